// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/schedule.hpp"

// Which part of the model a stage's chunk is. Shared by the rows of the table.
namespace nd::layout::placement {

constexpr int chunks_as_stated(const ScheduleShape& shape) { return shape.chunks; }
constexpr int chunks_both_ways(const ScheduleShape&) { return 2; }

constexpr int places_all_chunks(const ScheduleShape& shape) { return shape.stages * shape.chunks; }
constexpr int places_stages(const ScheduleShape& shape) { return shape.stages; }

/// Round and round: chunk c of stage i is part c p + i.
constexpr int looped(const ScheduleShape& shape, int stage, int chunk) { return chunk * shape.stages + stage; }
/// Down and back: the first and the last part share stage 0.
constexpr int v_shape(const ScheduleShape& shape, int stage, int chunk) {
  return chunk == 0 ? stage : 2 * shape.stages - 1 - stage;
}
/// Two copies of the model in opposite directions.
constexpr int both_ways(const ScheduleShape& shape, int stage, int chunk) {
  return chunk == 0 ? stage : shape.stages - 1 - stage;
}

}  // namespace nd::layout::placement
