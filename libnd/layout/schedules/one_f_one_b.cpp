// SPDX-License-Identifier: Apache-2.0
// 1F1B (PipeDream-Flush, Narayanan et al. 2021a): p - i - 1 forwards ahead, then one forward, one backward.
#include <algorithm>

#include "layout/schedules/emit.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout::one_f_one_b {

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 1) return "1f1b runs one model chunk per stage (vpp = 1); with more use interleaved";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  const int m = shape.micro_batches;
  const int ahead = std::min(m, shape.stages - stage - 1);
  for (int unit = 0; unit < ahead; ++unit) emit(out, PassKind::forward, 0, unit);
  for (int unit = 0; unit < m; ++unit) {
    if (ahead + unit < m) emit(out, PassKind::forward, 0, ahead + unit);
    emit(out, PassKind::backward, 0, unit);
  }
}

HeldPeak held(const ScheduleShape& shape, int stage) {
  const double kept = std::min(shape.micro_batches, shape.stages - stage);
  return {kept, 0, kept};
}

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return (shape.stages - 1) * (times.forward + times.backward());
}

}  // namespace nd::layout::one_f_one_b
