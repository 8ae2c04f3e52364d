// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "nd/parallel_config.hpp"

namespace nd::perf {

/// Seconds of one chunk of one stage for one micro-batch; `backward` includes recomputation.
struct ChunkSeconds {
  double forward = 0, backward = 0;
  [[nodiscard]] double total() const { return forward + backward; }
};

/// A pipeline to be run: chunks[stage * vpp + chunk].
struct PipelineWork {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1, chunks_per_stage = 1, micro_batches = 1;
  std::span<const ChunkSeconds> chunks;
};

struct PipelineSeconds {
  double makespan = 0;  ///< without messages between stages
  double busy = 0;      ///< of the busiest stage: micro-batches x its seconds
  int busiest = 0;      ///< its index, the first of equals; kNoStage when no single stage sets the pace
};
inline constexpr int kNoStage = -1;
/// Pace of a pipeline laid out by cost, relative to the mean stage: layers are whole, so it is never quite even [assumed].
inline constexpr double kBalancedPace = 1.04;

/// Closed form: m max(x) + (sum x - max x) / v with x = seconds of a stage per micro-batch. gpipe takes forward and backward
/// maxima separately. docs/cost_model_time.md#pipeline
[[nodiscard]] PipelineSeconds pipeline_seconds(const PipelineWork& work);
/// The same where the trainer moves layers between stages until they cost alike: the pace is kBalancedPace x the mean stage,
/// unless the layout as given is faster.
[[nodiscard]] PipelineSeconds balanced_pipeline_seconds(const PipelineWork& work);

}  // namespace nd::perf
