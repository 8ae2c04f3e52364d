// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "nd/run_spec.hpp"

namespace nd::run {

/// Share of each of `experts` experts, sum 1; empty when the list states another number of experts.
[[nodiscard]] std::vector<double> expert_shares(const ExpertLoad& load, std::int64_t experts);

}  // namespace nd::run
