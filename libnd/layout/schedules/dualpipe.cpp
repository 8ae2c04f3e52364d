// SPDX-License-Identifier: Apache-2.0
// DualPipe (DeepSeek-V3 report, section 3.2.1): two copies of the model in opposite directions, half of the
// micro-batches each way.
#include <algorithm>

#include "layout/schedules/schedules.hpp"
#include "layout/schedules/two_way.hpp"

namespace nd::layout::dualpipe {

namespace {
int from_end(const ScheduleShape& shape, int stage) { return std::min(stage, shape.stages - 1 - stage); }
}  // namespace

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.stages % 2 != 0) return "dualpipe needs an even number of stages";
  if (shape.chunks != 1) return "dualpipe runs one model chunk per stage and direction (vpp = 1)";
  if (shape.micro_batches % 2 != 0) return "dualpipe needs an even number of micro-batches, half for each direction";
  if (shape.micro_batches < 2 * shape.stages) return "dualpipe needs at least 2 micro-batches per stage";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  const int depth = shape.stages / 2;
  const bool second_half = stage >= depth;
  two_way_passes({.depth = depth,
                  .from_end = from_end(shape, stage),
                  .micro_batches = shape.micro_batches / 2,
                  .swapped = second_half,
                  .second_batch = true},
                 out);
}

HeldPeak held(const ScheduleShape& shape, int stage) { return two_way_held(shape.stages / 2, from_end(shape, stage)); }

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return two_way_bubble(shape.stages / 2, times);
}

}  // namespace nd::layout::dualpipe
