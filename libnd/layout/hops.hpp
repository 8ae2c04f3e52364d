// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "nd/schedule.hpp"

namespace nd::layout {

/// Whether two stages are neighbours on the ring, the only ones that exchange data.
[[nodiscard]] inline bool ring_neighbours(const ScheduleShape& shape, int from, int to) {
  return (from + 1) % shape.stages == to || (to + 1) % shape.stages == from;
}

/// Seconds of a transfer between two neighbours; 0 within a stage.
[[nodiscard]] inline double hop_seconds(const ReplayInput& input, int from, int to) {
  if (from == to || input.hop.empty()) return 0;
  if (input.hop.size() == 1) return input.hop.front().value;
  const bool onward = (from + 1) % input.shape.stages == to;
  return input.hop[static_cast<std::size_t>(onward ? from : to)].value;
}

}  // namespace nd::layout
