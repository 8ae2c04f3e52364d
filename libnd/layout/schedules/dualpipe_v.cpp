// SPDX-License-Identifier: Apache-2.0
// DualPipeV: DualPipe cut in half (Qi 2025, "Cut-in-half"; DualPipe repository): one copy of the model, laid out as a
// V, every micro-batch down the first chunk and back up the second.
#include "layout/schedules/schedules.hpp"
#include "layout/schedules/two_way.hpp"

namespace nd::layout::dualpipe_v {

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 2) return "dualpipe_v needs exactly 2 model chunks per stage (vpp = 2)";
  if (shape.micro_batches < 2 * shape.stages) return "dualpipe_v needs at least 2 micro-batches per stage";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  two_way_passes({.depth = shape.stages, .from_end = stage, .micro_batches = shape.micro_batches}, out);
}

HeldPeak held(const ScheduleShape& shape, int stage) { return two_way_held(shape.stages, stage); }

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return two_way_bubble(shape.stages, times);
}

}  // namespace nd::layout::dualpipe_v
