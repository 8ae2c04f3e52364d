// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline.hpp"

#include <algorithm>

namespace nd::perf {

namespace {

/// Fill and drain around m passes of the slowest stage.
double closed_form(double slowest, double sum, double micro_batches, double chunks) {
  return micro_batches * slowest + (sum - slowest) / chunks;
}

ChunkSeconds stage_seconds(const PipelineWork& work, std::size_t stage) {
  const auto v = static_cast<std::size_t>(work.chunks_per_stage);
  ChunkSeconds x;
  for (const ChunkSeconds& chunk : work.chunks.subspan(stage * v, v)) {
    x.forward += chunk.forward;
    x.backward += chunk.backward;
  }
  return x;
}

}  // namespace

PipelineSeconds busiest_stage(const PipelineWork& work) {
  PipelineSeconds result;
  double slowest = 0;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(work.stages); ++stage) {
    const double seconds = stage_seconds(work, stage).total();
    if (seconds <= slowest) continue;
    slowest = seconds;
    result.busiest = static_cast<int>(stage);
  }
  result.busy = slowest * work.micro_batches / work.model_copies;
  return result;
}

PipelineSeconds pipeline_seconds(const PipelineWork& work) {
  double sum_forward = 0, sum_backward = 0, max_forward = 0, max_backward = 0, max_total = 0;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(work.stages); ++stage) {
    const ChunkSeconds x = stage_seconds(work, stage);
    sum_forward += x.forward;
    sum_backward += x.backward;
    max_forward = std::max(max_forward, x.forward);
    max_backward = std::max(max_backward, x.backward);
    max_total = std::max(max_total, x.total());
  }
  const double m = work.micro_batches;
  PipelineSeconds result = busiest_stage(work);
  // All forwards come first in gpipe, so the slowest forward and the slowest backward stage each set a pace.
  result.makespan = work.schedule == Schedule::gpipe
                        ? closed_form(max_forward, sum_forward, m, 1.0) + closed_form(max_backward, sum_backward, m, 1.0)
                        : closed_form(max_total, sum_forward + sum_backward, m, work.chunks_per_stage);
  return result;
}

PipelineSeconds balanced_pipeline_seconds(const PipelineWork& work) {
  const PipelineSeconds as_given = pipeline_seconds(work);
  double sum = 0;
  for (const ChunkSeconds& chunk : work.chunks) sum += chunk.total();
  const double pace = kBalancedPace * sum / work.stages;
  const double m = work.micro_batches;
  if (m * pace >= as_given.busy) return as_given;
  return {.makespan = closed_form(pace, sum, m, work.chunks_per_stage), .busy = m * pace, .busiest = kNoStage};
}

}  // namespace nd::perf
