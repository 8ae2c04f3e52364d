// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "layout/step_length.hpp"
#include "perf/pipeline.hpp"

namespace nd::perf {

/// The seconds of a chunk as the replay takes them: what is neither recomputation nor weight gradient is the input half.
[[nodiscard]] PassTimes pass_times(const ChunkSeconds& chunk);

/// Length of pipelines, equal to the replay of their pass lists. Keeps its memory: not thread-safe, one per worker.
class PipelineReplay {
 public:
  /// Precondition: the schedule can run with this shape (ND_CHECK).
  [[nodiscard]] PipelineSeconds run(const PipelineWork& work);
  /// Never more than run(work).total(), without a replay: StepLength::at_least. Same precondition.
  [[nodiscard]] double at_least(const PipelineWork& work);

 private:
  /// Fills times_ with what the stages take, as given or laid out by cost.
  ReplayInput prepare(const PipelineWork& work, bool as_given);

  layout::StepLength length_;
  std::vector<PassTimes> times_;
  std::vector<Seconds> hop_;
};

}  // namespace nd::perf
