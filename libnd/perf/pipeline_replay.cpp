// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline_replay.hpp"

#include <algorithm>

#include "layout/schedules/table.hpp"

namespace nd::perf {

PassTimes pass_times(const ChunkSeconds& chunk) {
  PassTimes times;
  times.forward = {chunk.forward};
  times.recompute = {chunk.recompute};
  times.backward_weight = {chunk.weight_gradient};
  times.backward_input = {std::max(0.0, chunk.backward - chunk.recompute - chunk.weight_gradient)};
  return times;
}

ReplayInput PipelineReplay::prepare(const PipelineWork& work, bool as_given) {
  times_.clear();
  if (as_given) {
    for (const ChunkSeconds& chunk : work.chunks) times_.push_back(pass_times(chunk));
  } else {
    times_.assign(work.chunks.size(), pass_times(balanced_chunk(work)));
  }
  hop_.assign(work.hop > 0 ? 1 : 0, Seconds{work.hop});
  return {.shape = work.shape, .times = times_, .hop = hop_, .p2p_exposed = work.hop_exposed};
}

PipelineSeconds PipelineReplay::run(const PipelineWork& work) {
  PipelineSeconds result = busiest_stage(work);
  const layout::ScheduleRow& row = layout::schedule_row(work.schedule);
  ReplayInput input = prepare(work, result.busiest != kNoStage);
  const double with_messages = length_.of(row, input).value;
  result.makespan = with_messages;
  if (input.hop.empty()) return result;
  input.hop = {};
  result.makespan = length_.of(row, input).value;
  result.messages = with_messages - result.makespan;
  return result;
}

double PipelineReplay::at_least(const PipelineWork& work) {
  const ReplayInput input = prepare(work, busiest_stage(work).busiest != kNoStage);
  return length_.at_least(layout::schedule_row(work.schedule), input).value;
}

}  // namespace nd::perf
