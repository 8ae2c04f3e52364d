// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline_replay.hpp"

#include <algorithm>

#include "layout/schedules/table.hpp"
#include "nd/result.hpp"

namespace nd::perf {

PassTimes pass_times(const ChunkSeconds& chunk) {
  PassTimes times;
  times.forward = {chunk.forward};
  times.recompute = {chunk.recompute};
  times.backward_weight = {chunk.weight_gradient};
  times.backward_input = {std::max(0.0, chunk.backward - chunk.recompute - chunk.weight_gradient)};
  return times;
}

PipelineSeconds PipelineReplay::run(const PipelineWork& work, const ParallelConfig& config) {
  times_.clear();
  for (const ChunkSeconds& chunk : work.chunks) times_.push_back(pass_times(chunk));
  ReplayInput input;
  input.shape = schedule_shape(config);
  input.times = times_;
  const ReplayResult& replayed = replay_.run(layout::schedule_row(work.schedule), input);
  ND_CHECK(replayed.ok());
  PipelineSeconds result = busiest_stage(work);
  result.makespan = replayed.makespan.value;
  return result;
}

}  // namespace nd::perf
