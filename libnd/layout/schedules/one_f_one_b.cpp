// SPDX-License-Identifier: Apache-2.0
// 1F1B (PipeDream-Flush, Narayanan et al. 2021a): p - i - 1 forwards ahead, then one forward, one backward.
#include <algorithm>

#include "layout/schedules/schedules.hpp"
#include "layout/schedules/staircase.hpp"

namespace nd::layout::one_f_one_b {

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 1) return "1f1b runs one model chunk per stage (vpp = 1); with more use interleaved";
  return std::nullopt;
}

namespace {
Staircase order(const ScheduleShape& shape) { return {.units = shape.micro_batches}; }
}  // namespace

void passes(const ScheduleShape& shape, int stage, PassList& out) { staircase_passes(order(shape), shape.stages, stage, out); }

std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch) {
  return staircase_length(order(shape), times, scratch);
}

HeldPeak held(const ScheduleShape& shape, int stage) {
  const double kept = std::min(shape.micro_batches, shape.stages - stage);
  return {kept, 0, kept};
}

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return (shape.stages - 1) * (times.forward + times.backward());
}

}  // namespace nd::layout::one_f_one_b
