// SPDX-License-Identifier: Apache-2.0
// Length of an interleaved step by recurrence over all stages at once. Let stage i run its forward k in turn t = k + i. Then it
// waits for stage i - 1 in turn t - 1, and its backward j, which follows forward j + 2(p - 1 - i) + a (a ahead on the last
// stage), falls into turn t = j + 2(p - 1) + a - i and waits for stage i + 1 in turn t - 1. The loops from the last stage's
// forwards to the first's and from the first stage's backwards to the last's reach back at least p passes of the walk, as no
// group is smaller than p, and so to an earlier turn too. docs/cost_model_pipeline.md#recurrences.
#include <algorithm>
#include <utility>

#include "layout/schedules/interleaved_runs.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout::interleaved {

namespace {

/// One direction of a chunk on all stages.
struct Sweep {
  const double* seconds;
  const double* wait;
  const double* input;  ///< by receiving stage: end of what it waits for
  double* end;
  double* free;
};

void run_stages(const Sweep& sweep, std::ptrdiff_t first, std::ptrdiff_t last) {
  for (std::ptrdiff_t i = first; i <= last; ++i) {
    const double end = std::max(sweep.free[i], sweep.input[i] + sweep.wait[i]) + sweep.seconds[i];
    sweep.end[i] = end;
    sweep.free[i] = end;
  }
}

}  // namespace

std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch) {
  const std::ptrdiff_t p = shape.stages, v = shape.chunks, total = v * shape.micro_batches;
  const std::ptrdiff_t lag = 2 * (p - 1) + last_stage_ahead(shape);
  // Ends of one turn by stage; the cell before the first and the one after the last stage feed the loops.
  const auto cells = static_cast<std::size_t>(p + 2), passes = static_cast<std::size_t>(total);
  scratch.free.assign(cells, 0.0);
  scratch.forward_end.assign(2 * cells, 0.0);
  scratch.backward_end.assign(2 * cells, 0.0);
  scratch.last_forward.resize(passes);
  scratch.first_backward.resize(passes);
  double* const free = scratch.free.data() + 1;
  double *forward_before = scratch.forward_end.data() + 1, *forward_now = forward_before + cells;
  double *backward_before = scratch.backward_end.data() + 1, *backward_now = backward_before + cells;
  double *const last_forward = scratch.last_forward.data(), *const first_backward = scratch.first_backward.data();
  Runs forwards(shape), backwards(shape);

  for (std::ptrdiff_t t = 0; t < total + lag; ++t) {
    if (t < total + p - 1) {
      const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, t - total + 1), last = std::min(p - 1, t);
      forwards.advance_to(t - first);
      const Run& run = forwards.now();
      forward_before[-1] = run.chunk > 0 && first == 0 ? last_forward[t - run.size()] : 0.0;
      const auto sweep = [&](std::ptrdiff_t chunk) {
        return Sweep{times.forward.data() + chunk * p, times.forward_wait.data() + chunk * p, forward_before - 1, forward_now, free};
      };
      // Higher stages are at earlier passes, possibly of the run before.
      const std::ptrdiff_t split = std::min(last, t - run.begin);
      run_stages(sweep(run.chunk), first, split);
      if (split < last) run_stages(sweep(forwards.before().chunk), split + 1, last);
      if (last == p - 1) last_forward[t - last] = forward_now[last];
      std::swap(forward_before, forward_now);
    }
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, lag - t), last = std::min(p - 1, lag - t + total - 1);
    if (first > last) continue;
    backwards.advance_to(t + last - lag);
    const Run& run = backwards.now();
    backward_before[p] = run.chunk > 0 && last == p - 1 ? first_backward[t + last - lag - run.size()] : 0.0;
    const auto sweep = [&](std::ptrdiff_t walked) {
      const std::ptrdiff_t chunk = v - 1 - walked;
      return Sweep{times.backward.data() + chunk * p, times.backward_wait.data() + chunk * p, backward_before + 1, backward_now, free};
    };
    const std::ptrdiff_t split = std::max(first, run.begin + lag - t);
    run_stages(sweep(run.chunk), split, last);
    if (first < split) run_stages(sweep(backwards.before().chunk), first, split - 1);
    if (first == 0) first_backward[t - lag] = backward_now[0];
    std::swap(backward_before, backward_now);
  }
  return *std::max_element(free, free + p);
}

}  // namespace nd::layout::interleaved
