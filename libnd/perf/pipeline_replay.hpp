// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "layout/replay.hpp"
#include "perf/pipeline.hpp"

namespace nd::perf {

/// The seconds of a chunk as the replay takes them: what is neither recomputation nor weight gradient is the input half.
[[nodiscard]] PassTimes pass_times(const ChunkSeconds& chunk);

/// Makespan of schedules without a closed form, by running their pass lists. Keeps its memory: not thread-safe, one per worker.
class PipelineReplay {
 public:
  /// Messages are free here; their time is a part of its own. Precondition: the schedule can run with this shape (ND_CHECK).
  [[nodiscard]] PipelineSeconds run(const PipelineWork& work, const ParallelConfig& config);

 private:
  layout::Replay replay_;
  std::vector<PassTimes> times_;
};

}  // namespace nd::perf
