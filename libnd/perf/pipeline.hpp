// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "nd/schedule.hpp"

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
  ScheduleShape shape;
  int chunks_per_stage = 1;  ///< as the schedule places them: 2 for DualPipe
  std::span<const ChunkSeconds> chunks;
  int model_copies = 1;      ///< a chunk sees one of so many micro-batches (2: both directions of DualPipe)
  double hop = 0;            ///< seconds of one message between neighbouring stages
  bool hop_exposed = false;  ///< receives block the stage
  bool balanced = false;     ///< the trainer moves layers between stages until they cost alike, if that is faster
};

struct PipelineSeconds {
  double makespan = 0;  ///< passes and waiting if messages were free
  double messages = 0;  ///< what the messages between stages add to it
  double busy = 0;      ///< of the busiest stage: micro-batches x its seconds
  int busiest = 0;      ///< its index, the first of equals; kNoStage when no single stage sets the pace
  [[nodiscard]] double total() const { return makespan + messages; }
};
inline constexpr int kNoStage = -1;
/// Pace of a pipeline laid out by cost, relative to the mean stage: layers are whole, so it is never quite even [assumed].
inline constexpr double kBalancedPace = 1.04;

/// The busiest stage and its seconds over all micro-batches; no makespan. A pipeline laid out by cost works at kBalancedPace
/// times the mean stage, unless the layout as given is faster. docs/cost_model_time.md#pipeline
[[nodiscard]] PipelineSeconds busiest_stage(const PipelineWork& work);
/// Each chunk of a pipeline laid out by cost: the mean of all chunks times the pace.
[[nodiscard]] ChunkSeconds balanced_chunk(const PipelineWork& work);

}  // namespace nd::perf
