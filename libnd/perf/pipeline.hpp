// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "nd/parallel_config.hpp"

namespace nd::perf {

/// Seconds of one chunk of one stage for one micro-batch. `recompute` and `weight_gradient` are parts of `backward`.
struct ChunkSeconds {
  double forward = 0, backward = 0;
  double recompute = 0, weight_gradient = 0;
  [[nodiscard]] double total() const { return forward + backward; }
};

/// A pipeline to be run: chunks[stage * chunks_per_stage + chunk].
struct PipelineWork {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1, chunks_per_stage = 1, micro_batches = 1;
  std::span<const ChunkSeconds> chunks;
  int model_copies = 1;  ///< a chunk sees one of so many micro-batches (2: both directions of DualPipe)
};

struct PipelineSeconds {
  double makespan = 0;  ///< without messages between stages
  double busy = 0;      ///< of the busiest stage: micro-batches x its seconds
  int busiest = 0;      ///< its index, the first of equals; kNoStage when no single stage sets the pace
};
inline constexpr int kNoStage = -1;
/// Pace of a pipeline laid out by cost, relative to the mean stage: layers are whole, so it is never quite even [assumed].
inline constexpr double kBalancedPace = 1.04;

/// Whether the closed forms below hold for a schedule; the others are replayed (pipeline_replay.hpp).
[[nodiscard]] constexpr bool has_closed_form(Schedule schedule) {
  return schedule == Schedule::gpipe || schedule == Schedule::one_f_one_b || schedule == Schedule::interleaved;
}
/// The busiest stage and its seconds over all micro-batches; no makespan.
[[nodiscard]] PipelineSeconds busiest_stage(const PipelineWork& work);
/// Closed form: m max(x) + (sum x - max x) / v with x = seconds of a stage per micro-batch. gpipe takes forward and backward
/// maxima separately. docs/cost_model_time.md#pipeline
[[nodiscard]] PipelineSeconds pipeline_seconds(const PipelineWork& work);
/// The same where the trainer moves layers between stages until they cost alike: the pace is kBalancedPace x the mean stage,
/// unless the layout as given is faster.
[[nodiscard]] PipelineSeconds balanced_pipeline_seconds(const PipelineWork& work);

}  // namespace nd::perf
