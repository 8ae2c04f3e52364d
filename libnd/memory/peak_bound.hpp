// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "layout/layout.hpp"
#include "memory/fit_test.hpp"
#include "memory/in_flight.hpp"
#include "memory/ledger_summary.hpp"
#include "memory/state_bytes.hpp"

namespace nd::memory {

/// How many micro-batches' worth of layers a stage keeps for the backward, by kind and Recompute mode: what the bound of its
/// activations needs besides the shape.
struct KeptLayers {
  std::vector<std::array<double, 3>> by_kind;
};
[[nodiscard]] KeptLayers kept_layers(std::span<const layout::Chunk> chunks, const KeptFront& front);

/// Static bytes per element that are there at every backward: the sum of weight, optimizer states and, where they are sure to
/// be there, gradients.
struct StaticRates {
  StateRates::PerClass vector{}, matrix{};
};
[[nodiscard]] StaticRates static_rates(const Scenario& scenario, const ParallelConfig& config, const StateRates& rates);

/// What StageMemory::reserved of the stage cannot be below: states and kept layers at the instant `backward`, nothing else.
/// docs/cost_model_memory.md#memory-bound
[[nodiscard]] double stage_bound(const ReserveRule& reserve, double static_bytes, double kept_bytes);
[[nodiscard]] double static_bound(const ElementCount& elements, const StaticRates& rates);
[[nodiscard]] double kept_bound(const KeptLayers& kept, const ShapeSummary& shape);
/// The same for layers that may each have any mode.
[[nodiscard]] double lightest_bound(const KeptLayers& kept, const ShapeSummary& shape);

}  // namespace nd::memory
