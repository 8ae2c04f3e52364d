// SPDX-License-Identifier: Apache-2.0
#include "layout/schedules/staircase.hpp"

#include <algorithm>
#include <cstddef>

#include "layout/schedules/emit.hpp"

namespace nd::layout {

void staircase_passes(const Staircase& order, int stages, int stage, PassList& out) {
  const int units = order.units, ahead = std::min(units, stages - 1 - stage + order.last_ahead);
  for (int unit = 0; unit < ahead; ++unit) emit(out, PassKind::forward, 0, unit);
  for (int n = 0; n < units; ++n) {
    if (ahead + n < units) emit(out, PassKind::forward, 0, ahead + n);
    const int part = n % order.parts;
    emit(out, order.split ? PassKind::backward_input : PassKind::backward, 0, n - part + (order.parts - 1 - part));
    if (order.split && n >= stage) emit(out, PassKind::backward_weight, 0, n - stage);
  }
  if (!order.split) return;
  for (int unit = std::max(0, units - stage); unit < units; ++unit) emit(out, PassKind::backward_weight, 0, unit);
}

double staircase_length(const Staircase& order, const StepTimes& times, StepScratch& scratch) {
  const auto stages = static_cast<std::ptrdiff_t>(times.stages), units = static_cast<std::ptrdiff_t>(order.units);
  const std::ptrdiff_t most_ahead = stages - 1 + order.last_ahead;
  scratch.free.assign(times.stages, 0.0);
  scratch.forward_end.assign(times.stages + 1, 0.0);  // [i + 1]: of stage i; [0]: the data is there from the start
  double* const free = scratch.free.data();
  double* const forward_end = scratch.forward_end.data();
  const double *const forward = times.forward.data(), *const backward = times.backward.data();
  const double *const forward_wait = times.forward_wait.data(), *const backward_wait = times.backward_wait.data();
  for (std::ptrdiff_t k = -most_ahead; k < units; ++k) {
    // Turn k of stage i runs forward k + most_ahead - i. Downwards, so that forward_end[i] is still that of turn k - 1.
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, k + most_ahead - units + 1);
    const std::ptrdiff_t last = std::min(stages - 1, k + most_ahead);
    for (std::ptrdiff_t i = last; i >= first; --i) {
      free[i] = std::max(free[i], forward_end[i] + forward_wait[i]) + forward[i];
      forward_end[i + 1] = free[i];
    }
    if (k < 0) continue;
    double gradient = 0;
    for (std::ptrdiff_t i = stages - 1; i >= 0; --i) {
      gradient = std::max(free[i], gradient + backward_wait[i]) + backward[i];
      free[i] = order.split && k >= i ? gradient + times.weight[static_cast<std::size_t>(i)] : gradient;
    }
  }
  double length = 0;
  for (std::ptrdiff_t i = 0; i < stages; ++i) {
    const double put_off = order.split ? static_cast<double>(std::min(i, units)) * times.weight[static_cast<std::size_t>(i)] : 0.0;
    length = std::max(length, free[i] + put_off);
  }
  return length;
}

}  // namespace nd::layout
