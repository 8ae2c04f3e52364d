// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nd/validation.hpp"

namespace nd::report {

/// Memory errors of one group of rows, as priced and without what only the rows' own file taught.
struct MemoryGroup {
  std::string name;
  ErrorStatistics as_priced, left_out;
};

/// By reading: allocator counters of wide models, of the rest, reserved and device readings; and every stage that is named.
[[nodiscard]] std::vector<MemoryGroup> memory_by_reading(const ValidationReport& report);
/// By file.
[[nodiscard]] std::vector<MemoryGroup> memory_by_source(const ValidationReport& report);
/// Rows that state a peak of a run that worked, and how many of them are priced.
struct PeakCoverage {
  std::int64_t stated = 0, priced = 0;
};
[[nodiscard]] PeakCoverage peak_coverage(const ValidationReport& report);

}  // namespace nd::report
