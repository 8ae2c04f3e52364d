// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nd/parallel_config.hpp"
#include "nd/scenario.hpp"
#include "nd/units.hpp"

namespace nd {

/// The layers of a strategy, laid out anew over its stages and chunks.
struct BalancedStrategy {
  std::vector<std::vector<std::int64_t>> layers_per_chunk;  ///< [chunk][stage], as RunSpec::layers_per_chunk
  Seconds step{};           ///< with that layout
  Seconds pipeline{};       ///< replayed makespan of its passes
  Seconds even_pipeline{};  ///< of the even split, the remainder in the middle stages
  Seconds bound{};          ///< no layout has a shorter makespan
  bool even_fits = false;   ///< the even split fits
  bool proven = false;      ///< no layout that fits has a shorter makespan
  std::int64_t replays = 0;
};

/// The layout with the shortest replayed makespan of all that fit, layers recomputed as `config` says; one chunk per stage:
/// exact. nullopt when none fits, without a pipeline, with a mode per layer, and for schedules that hold a part of the model twice.
/// Precondition: the strategy is legal. Pure; thread-safe. docs/cost_model_plan.md#balance
[[nodiscard]] std::optional<BalancedStrategy> balance_strategy(const Scenario& scenario, const ParallelConfig& config);

/// One layer, or several alike, as a pipeline balancer wants to know them. A mode that is no option has negative seconds.
struct LayerDescription {
  std::string name, type;    ///< type: HEAD (the tables in front), BODY, TAIL (head and MTP blocks)
  std::int64_t layers = 1;
  Bytes parameter_memory{};  ///< held whatever runs: parameters, gradients, optimizer states of one layer
  std::array<Bytes, kLayerModes> activations{};  ///< of one micro-batch of one layer, by Recompute
  Seconds forward{};         ///< one micro-batch, one layer
  std::array<Seconds, kLayerModes> backward{};   ///< by Recompute, what is recomputed included
};
/// The layers of a strategy's pipeline: one entry per layer kind, between one for the tables in front and one for the head.
/// Same precondition.
[[nodiscard]] std::vector<LayerDescription> describe_layers(const Scenario& scenario, const ParallelConfig& config);

}  // namespace nd
