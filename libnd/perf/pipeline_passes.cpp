// SPDX-License-Identifier: Apache-2.0
#include "perf/time_model.hpp"

namespace nd::perf {

PipelinePasses TimeModel::passes(const ParallelConfig& config) {
  prepare(config);
  return passes();
}

PipelinePasses TimeModel::passes(const ParallelConfig& config, const layout::StageLayout& layout) {
  prepare(config, layout);
  return passes();
}

PipelinePasses TimeModel::passes() {
  const ParallelConfig& config = at_->config;
  const PipelineWork work = pipeline_work();
  const PipelineSeconds pipeline = replay_.run(work);

  PipelinePasses out;
  out.schedule = config.schedule;
  out.shape = work.shape;
  out.pipeline = {pipeline.makespan};
  out.balanced = pipeline.busiest == kNoStage;
  if (out.balanced) {
    out.times.assign(work.chunks.size(), pass_times(balanced_chunk(work)));
  } else {
    for (const ChunkSeconds& chunk : work.chunks) out.times.push_back(pass_times(chunk));
  }
  if (work.hop > 0) out.hop = {Seconds{work.hop}};
  out.p2p_exposed = work.hop_exposed;
  return out;
}

}  // namespace nd::perf
