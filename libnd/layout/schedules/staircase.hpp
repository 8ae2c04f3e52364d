// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout/schedules/row.hpp"
#include "layout/schedules/step_times.hpp"

namespace nd::layout {

/// The family of 1F1B: stage i runs a number of forwards ahead that falls by one from stage to stage, then one forward and one
/// backward in turn. ZB-H1 splits the backward, Seq1F1B runs parts of sequences.
struct Staircase {
  int units = 1;           ///< micro-batches, or parts of sequences
  int last_ahead = 0;      ///< forwards the last stage runs ahead; stage i runs p - 1 - i more
  int parts = 1;           ///< backwards of each so many units run in reverse
  bool split = false;      ///< backward in two halves; stage i puts its weight half off by i units
};

void staircase_passes(const Staircase& order, int stages, int stage, PassList& out);

/// Length of the step by recurrence, O(p m) and without lists. With x(i, k) and y(i, k) the ends of the k-th forward and
/// backward of the turns of stage i, x also for the negative k of the forwards ahead:
///   x(i, k) = max(free(i), x(i - 1, k - 1) + wait) + F(i)   since stage i - 1 runs one forward more ahead
///   y(i, k) = max(x(i, k), y(i + 1, k) + wait) + B(i)
/// Equal to the replay; docs/cost_model_pipeline.md#recurrences.
[[nodiscard]] double staircase_length(const Staircase& order, const StepTimes& times, StepScratch& scratch);

}  // namespace nd::layout
