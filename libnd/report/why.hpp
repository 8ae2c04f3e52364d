// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/report.hpp"

namespace nd::report {

/// Why the first of the ranking is the first, one sentence each: what its step is made of, what the next one loses and where, how many
/// cannot be told apart from it. Empty when nothing fits.
[[nodiscard]] std::vector<std::string> why_first(const SearchReport& report);

/// "vpp=10 instead of 5, recompute=full instead of off": where `other` differs from `best`.
[[nodiscard]] std::string differences(const ParallelConfig& other, const ParallelConfig& best);

}  // namespace nd::report
