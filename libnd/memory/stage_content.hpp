// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "layout/layout.hpp"
#include "memory/ledger_summary.hpp"

namespace nd::memory {

/// What one stage is made of, summed over its chunks; elements on one rank.
struct StageContent {
  ElementCount elements;        ///< everything with a weight
  ElementCount body;            ///< layers and MTP blocks
  ElementCount largest_layer;   ///< the layer or MTP block with most elements
  ElementCount embedding, head; ///< tables with their norms; zero where the stage has none
  std::array<double, kParameterClassCount> largest_tensor{};
  double layers = 0;            ///< body layers
  std::int64_t mtp_blocks = 0;
  bool has_embedding = false, has_head = false;
};

/// A tied table is held once where first and last stage are one, twice otherwise. MTP blocks read the table: a stage that has
/// them but not the embedding holds a copy, unless its tied head already is one. docs/cost_model_memory.md#memory-tables.
[[nodiscard]] StageContent stage_content(const ResolvedModel& model, const ShapeSummary& shape, std::span<const layout::Chunk> chunks);

/// The head's ledger on this stage: without a table of its own where the tied one is here anyway.
[[nodiscard]] const LedgerSummary& head_summary(const ResolvedModel& model, const ShapeSummary& shape, bool has_embedding);
/// True where MTP blocks need a copy of the token table on this stage.
[[nodiscard]] bool copies_table(const ResolvedModel& model, const StageContent& content);

/// Shares of a chunk's layers under each Recompute mode.
struct RecomputeShares {
  double off = 1, selective = 0, full = 0;
  [[nodiscard]] double mix(const std::array<double, kLayerModes>& bytes) const { return off * bytes[0] + selective * bytes[1] + full * bytes[2]; }
  /// The mode that recomputes most.
  [[nodiscard]] Recompute heaviest() const { return full > 0 ? Recompute::full : selective > 0 ? Recompute::selective : Recompute::off; }
};
/// Of the layers of one kind.
[[nodiscard]] RecomputeShares recompute_shares(const layout::Chunk& chunk, std::size_t kind);
/// Of the MTP blocks: as planned; else the mode of the chunk's layers where all have one, `otherwise` on a chunk without layers, else off.
[[nodiscard]] RecomputeShares mtp_shares(const layout::Chunk& chunk, Recompute otherwise);

}  // namespace nd::memory
