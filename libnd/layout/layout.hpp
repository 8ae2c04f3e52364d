// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "nd/ops.hpp"
#include "nd/scenario.hpp"

namespace nd::layout {

/// Of the layers of one kind, those that are recomputed; the rest keep everything.
struct KindModes {
  std::int64_t selective = 0, full = 0;
  friend bool operator==(const KindModes&, const KindModes&) = default;
};

/// What one chunk of one stage holds.
struct Chunk {
  std::vector<std::int64_t> layers_by_kind;  ///< body layers, by kind index of the model
  bool embedding = false, head = false;
  std::int64_t mtp_blocks = 0;
  /// Of the body layers, those recomputed; the rest keep everything.
  std::int64_t full_recompute = 0, selective_recompute = 0;
  /// A plan: the same kind by kind, then those of the MTP blocks. Empty: spread evenly over the kinds, MTP blocks as all layers.
  std::vector<KindModes> modes;
  [[nodiscard]] std::int64_t layers() const;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// stages[stage][chunk]
struct StageLayout {
  std::vector<std::vector<Chunk>> stages;
  bool balanced = false;  ///< layers do not divide evenly and the framework lays them out by cost
};

/// Layers to stages and chunks, place by place: chunk c of stage s is place c * pp + s. Explicit run.layers_per_chunk when it matches
/// the degrees; else run.layer_split: evenly, the remainder going one each to the middle stages' first chunks (the ends carry table
/// and head), or by the cost of blocks where stages have one chunk. docs/cost_model_pipeline.md#layouts
[[nodiscard]] StageLayout make_layout(const ResolvedModel& model, const ResolvedRun& run, const ParallelConfig& config);

/// The same chunks where the schedule of `config` holds them: down and back, or both ways (then each twice). A shape that the schedule
/// cannot run stays in a loop.
[[nodiscard]] StageLayout scheduled_layout(const ResolvedModel& model, const ResolvedRun& run, const ParallelConfig& config);

/// Shape factors of a candidate.
[[nodiscard]] LayerShape layer_shape(const ResolvedRun& run, const ParallelConfig& config);

/// Micro-batches (times chunks) kept at once on `stage`, in units of one chunk of one micro-batch.
/// Taken from the schedule's row (layout/schedules/table.hpp): gpipe m * vpp; 1f1b min(m, pp - stage); interleaved
/// min(2(pp - stage - 1) + (vpp - 1) pp + 1, m vpp). Zero-bubble schedules: activations and deferred weight-gradient inputs
/// together, each counted as a whole chunk.
[[nodiscard]] double chunks_in_flight(const ParallelConfig& config, int stage);

/// Where the ranks of a group are, from the rank order of the framework.
/// `inside[l]` ranks of the group share one unit of level l (cumulative, 1 = none but itself); the last equals `ranks`.
struct GroupPlacement {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;  ///< distance between neighbours of the group in rank numbers
  std::vector<std::int64_t> inside;
};
[[nodiscard]] GroupPlacement place_group(const Scenario& scenario, const ParallelConfig& config, GroupKind group);

}  // namespace nd::layout
