// SPDX-License-Identifier: Apache-2.0
// ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2.2): 1F1B with the backward split; stage i puts
// off its weight gradients by i micro-batches, so that every stage holds p micro-batches, activations and put-off
// gradients together.
#include <algorithm>

#include "layout/schedules/emit.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout::zb_h1 {

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 1) return "zb_h1 runs one model chunk per stage (vpp = 1)";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  const int m = shape.micro_batches;
  const int ahead = std::min(m, shape.stages - stage - 1);
  for (int unit = 0; unit < ahead; ++unit) emit(out, PassKind::forward, 0, unit);
  for (int unit = 0; unit < m; ++unit) {
    if (ahead + unit < m) emit(out, PassKind::forward, 0, ahead + unit);
    emit(out, PassKind::backward_input, 0, unit);
    if (unit >= stage) emit(out, PassKind::backward_weight, 0, unit - stage);
  }
  for (int unit = std::max(0, m - stage); unit < m; ++unit) emit(out, PassKind::backward_weight, 0, unit);
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
