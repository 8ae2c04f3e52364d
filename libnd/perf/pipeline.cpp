// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline.hpp"

namespace nd::perf {

namespace {

double stage_seconds(const PipelineWork& work, std::size_t stage) {
  const auto v = static_cast<std::size_t>(work.chunks_per_stage);
  double seconds = 0;
  for (const ChunkSeconds& chunk : work.chunks.subspan(stage * v, v)) seconds += chunk.total();
  return seconds;
}

}  // namespace

ChunkSeconds balanced_chunk(const PipelineWork& work) {
  ChunkSeconds mean;
  const double share = kBalancedPace / static_cast<double>(work.chunks.size());
  for (const ChunkSeconds& chunk : work.chunks) {
    mean.forward += share * chunk.forward;
    mean.backward += share * chunk.backward;
    mean.recompute += share * chunk.recompute;
    mean.weight_gradient += share * chunk.weight_gradient;
  }
  return mean;
}

PipelineSeconds busiest_stage(const PipelineWork& work) {
  PipelineSeconds result;
  double slowest = 0;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(work.shape.stages); ++stage) {
    const double seconds = stage_seconds(work, stage);
    if (seconds <= slowest) continue;
    slowest = seconds;
    result.busiest = static_cast<int>(stage);
  }
  if (work.balanced) {
    const double pace = balanced_chunk(work).total() * work.chunks_per_stage;
    if (pace < slowest) {
      slowest = pace;
      result.busiest = kNoStage;
    }
  }
  result.busy = slowest * work.shape.micro_batches / work.model_copies;
  return result;
}

}  // namespace nd::perf
