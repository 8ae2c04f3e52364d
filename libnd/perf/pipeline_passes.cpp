// SPDX-License-Identifier: Apache-2.0
#include "perf/time_model.hpp"

namespace nd::perf {

namespace {

/// A stage of a pipeline laid out by cost: each of its chunks takes the mean of all chunks times the pace.
PassTimes balanced_times(const PipelineWork& work) {
  ChunkSeconds mean;
  const double share = kBalancedPace / static_cast<double>(work.chunks.size());
  for (const ChunkSeconds& chunk : work.chunks) {
    mean.forward += share * chunk.forward;
    mean.backward += share * chunk.backward;
    mean.recompute += share * chunk.recompute;
    mean.weight_gradient += share * chunk.weight_gradient;
  }
  return pass_times(mean);
}

}  // namespace

PipelinePasses TimeModel::passes(const ParallelConfig& config) {
  const Groups& groups = this->groups(config);
  const ShapeTimes& times = shape_times(config, groups.layer);
  const FoldedLayout& layout = folded_layout(config);
  price_chunks(layout, times, groups);
  const PipelineWork work = pipeline_work(config, layout);
  const PipelineSeconds pipeline = run_pipeline(work, config, layout.balanced);

  PipelinePasses out;
  out.schedule = config.schedule;
  out.shape = schedule_shape(config);
  out.pipeline = {pipeline.makespan};
  out.balanced = pipeline.busiest == kNoStage;
  if (out.balanced) {
    out.times.assign(work.chunks.size(), balanced_times(work));
  } else {
    for (const ChunkSeconds& chunk : work.chunks) out.times.push_back(pass_times(chunk));
  }
  if (config.pp == 1) return out;
  out.hop = {Seconds{message_seconds(groups.pipeline, times.boundary_bytes)}};
  out.p2p_exposed = !scenario_.profile.time.p2p_overlap;
  return out;
}

}  // namespace nd::perf

namespace nd {

PipelinePasses pipeline_passes(const Scenario& scenario, const ParallelConfig& config) {
  return perf::TimeModel(scenario).passes(config);
}

}  // namespace nd
