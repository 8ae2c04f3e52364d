// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "nd/verify.hpp"

namespace nd::verify {

/// Reads what the shapes alone say about the model, beside what was configured, and lays it over `out.measured`.
void measure_facts(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors, Verification& out);

}  // namespace nd::verify
