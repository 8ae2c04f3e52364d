// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "layout/layout.hpp"
#include "perf/data_parallel.hpp"
#include "perf/layer_time.hpp"
#include "perf/pipeline.hpp"

namespace nd::perf {

/// Times of everything a chunk may hold, for one shape in one placement.
struct ShapeTimes {
  std::vector<LayerTime> kinds;  ///< by kind index of the model
  LayerTime embedding, head, mtp;
  double tied_head_elements = 0; ///< dense elements of a head whose table is the embedding of the same rank
  double model_seconds = 0;      ///< forward and backward of one micro-batch through the whole model, nothing recomputed
  double boundary_bytes = 0;     ///< hidden state that crosses a stage boundary, per rank and micro-batch
};

/// One chunk, one micro-batch: forward, backward and recomputation by part, and the parameters it holds.
struct ChunkTime {
  PartSeconds parts;
  ChunkSeconds seconds;
  Elements elements;
  void add(const ChunkTime& other);
};

/// Forward and backward of one layer for one micro-batch in one mode, as chunk_time counts them.
[[nodiscard]] double layer_seconds(const LayerTime& layer, Recompute mode, const DataParallelPlan& plan);

/// Sum over the layers of `chunk` and, where it has them, table, MTP blocks and head; the gathers of parameter sharding
/// included. `tied`: the model's head shares the token table. docs/cost_model_time.md#chunk
[[nodiscard]] ChunkTime chunk_time(const layout::Chunk& chunk, const ShapeTimes& times, const DataParallelPlan& plan, bool tied);

}  // namespace nd::perf
