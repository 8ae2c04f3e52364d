// SPDX-License-Identifier: Apache-2.0
// ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2.2): 1F1B with the backward split; stage i puts
// off its weight gradients by i micro-batches, so that every stage holds p micro-batches, activations and put-off
// gradients together.
#include <algorithm>

#include "layout/schedules/schedules.hpp"
#include "layout/schedules/staircase.hpp"

namespace nd::layout::zb_h1 {

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 1) return "zb_h1 runs one model chunk per stage (vpp = 1)";
  return std::nullopt;
}

namespace {
Staircase order(const ScheduleShape& shape) { return {.units = shape.micro_batches, .split = true}; }
}  // namespace

void passes(const ScheduleShape& shape, int stage, PassList& out) { staircase_passes(order(shape), shape.stages, stage, out); }

std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch) {
  return staircase_length(order(shape), times, scratch);
}

HeldPeak held(const ScheduleShape& shape, int stage) {
  const int m = shape.micro_batches, p = shape.stages;
  return {static_cast<double>(std::min(m, p - stage)), static_cast<double>(std::min(m, stage + 1)),
          static_cast<double>(std::min(m, p))};
}

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  if (shape.micro_batches < shape.stages || times.backward_weight > times.forward ||
      times.backward_weight > times.backward_input)
    return std::nullopt;
  return (shape.stages - 1) * (times.forward + times.backward_input - times.backward_weight);
}

}  // namespace nd::layout::zb_h1
