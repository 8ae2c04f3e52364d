// SPDX-License-Identifier: Apache-2.0
// Seq1F1B (Sun et al. 2024): every sequence is cut into n parts that go forward in order and backward in reverse,
// because the gradients of a part's keys and values come from the later parts. Stage i runs p - i - 2 + n parts ahead.
#include <algorithm>

#include "layout/schedules/schedules.hpp"
#include "layout/schedules/staircase.hpp"

namespace nd::layout::seq_1f1b {

namespace {
int parts_ahead(const ScheduleShape& shape, int stage) {
  return std::min(shape.stages - stage - 2 + shape.parts, shape.units());
}
Staircase order(const ScheduleShape& shape) {
  return {.units = shape.units(), .last_ahead = shape.parts - 1, .parts = shape.parts};
}
}  // namespace

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 1) return "seq_1f1b runs one model chunk per stage (vpp = 1)";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) { staircase_passes(order(shape), shape.stages, stage, out); }

std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch) {
  return staircase_length(order(shape), times, scratch);
}

HeldPeak held(const ScheduleShape& shape, int stage) {
  const double kept = std::min(parts_ahead(shape, stage) + 1, shape.units()) / static_cast<double>(shape.parts);
  return {kept, 0, kept};
}

// 1F1B with parts for micro-batches: (p - 1)(F + B) of one part.
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return (shape.stages - 1) * (times.forward + times.backward()) / shape.parts;
}

}  // namespace nd::layout::seq_1f1b
