// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "layout/replay.hpp"
#include "layout/schedules/row.hpp"
#include "layout/schedules/step_times.hpp"

namespace nd::layout {

/// How long a step lasts, equal to the makespan of Replay (tests: 1e-12 relative) but without its statistics: by the recurrence
/// of the schedule's row where it has one, else by running its lists. Keeps its memory. Not thread-safe; one per worker.
class StepLength {
 public:
  /// Precondition (ND_CHECK): the schedule can run with this shape and there is one set of times per stage and chunk.
  [[nodiscard]] Seconds of(const ScheduleRow& row, const ReplayInput& input);
  /// Never more than `of`, for a few operations per stage and chunk: the most that a stage must work and receive after the
  /// first micro-batch has come to it and before the last one's gradient has gone from it to the first stage, or one
  /// micro-batch all the way. With equal stages and free transfers it is exact for gpipe, 1f1b and interleaved. Same precondition.
  /// docs/cost_model_pipeline.md#lower-bound.
  [[nodiscard]] Seconds at_least(const ScheduleRow& row, const ReplayInput& input);

 private:
  void prepare(const ScheduleRow& row, const ReplayInput& input);

  Replay replay_;
  StepTimes times_;
  StepScratch scratch_;
  std::vector<int> holder_;  ///< stage per place and copy of the model
  std::vector<double> reach_;
};

}  // namespace nd::layout
