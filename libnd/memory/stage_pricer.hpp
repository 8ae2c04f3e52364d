// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "layout/layout.hpp"
#include "memory/fit_test.hpp"
#include "memory/in_flight.hpp"
#include "memory/items.hpp"
#include "memory/stage_content.hpp"
#include "memory/state_bytes.hpp"
#include "nd/memory.hpp"

namespace nd::memory {

/// All that the price of a stage depends on.
struct StageInput {
  const Scenario& scenario;
  const ParallelConfig& config;
  const ShapeSummary& shape;
  const StateRates& rates;
  const ReserveRule& reserve;
  std::span<const layout::Chunk> chunks;
  const KeptFront& front;  ///< of this stage's schedule
  int stage = 0;
};

/// Price of a stage, with what its ledger needs. Reused between candidates: `counts` and `chunk_bytes` keep their storage.
struct StagePrice {
  StageMemory memory;
  ItemBytes items;             ///< at the peak instant
  bool keeps_activations = false, has_gradients = true, has_moments = false;  ///< at the peak instant
  std::array<double, kInstants> held{};  ///< ReserveRule::held by Instant; 0 where an instant cannot be the peak
  double trained_elements = 0; ///< adapter elements of the stage on one rank
  // What prepare_stage() finds out: the same for every ZeRO level and number of optimizer shards.
  StageContent content;
  double activations = 0, in_flight = 0, logit_sets = 0, distinct_weights = 0;
  std::vector<double> chunk_bytes;  ///< kept bytes of one micro-batch, by chunk
  std::vector<double> counts;       ///< micro-batches kept, by chunk
};

/// Bytes that the backward of a layer makes again. full: the complete ledger beside the kept input; selective: what the mode dropped.
[[nodiscard]] double recomputed_bytes(const MemoryProfile& memory, const LedgerSummary& ledger, Recompute mode);

/// The part of price_stage() that neither the state rates nor the ZeRO level touch.
void prepare_stage(const StageInput& input, StagePrice& out);
/// The rest. `out` was prepared for an input that differs in zero, op and what follows from them at most.
void price_prepared_stage(const StageInput& input, ReadingTime reading, StagePrice& out);
/// Both: fills `out` with the stage's memory at its peak instant. docs/cost_model_memory.md#memory-instants.
void price_stage(const StageInput& input, ReadingTime reading, StagePrice& out);

}  // namespace nd::memory
