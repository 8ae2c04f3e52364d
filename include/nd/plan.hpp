// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "nd/parallel_config.hpp"
#include "nd/scenario.hpp"
#include "nd/units.hpp"

namespace nd {

/// Layers of one kind in one chunk of one stage that run in one mode; the layers that recompute most come first.
struct PlannedLayers {
  int stage = 0, chunk = 0;
  int kind = 0;            ///< kind index of the model; -1: MTP blocks
  std::int64_t count = 0;
  Recompute mode = Recompute::off;
  friend bool operator==(const PlannedLayers&, const PlannedLayers&) = default;
};

/// Bytes that decide whether a stage fits, at the moments at which it may hold most.
struct StageMoments {
  Bytes warm_up{};          ///< every micro-batch in flight, first backward
  Bytes end_of_backward{};  ///< 0 where nothing piles up until then
};

/// What every layer of a strategy with Recompute::per_layer does.
struct LayerPlan {
  std::vector<PlannedLayers> layers;  ///< by stage, chunk and kind
  std::vector<StageMoments> stages;
  Seconds saved{};                    ///< of a step, against every layer fully recomputed; 0 when it is not faster
  bool fits = false;                  ///< else the plan that needs least memory
};

/// The plan behind the price of `config`: on every stage the fastest modes that fit, of those that run.layer_modes allows. A
/// function of its arguments alone. Precondition: the strategy is legal, its recompute is per_layer. Thread-safe.
/// docs/cost_model_plan.md#per-layer
[[nodiscard]] LayerPlan plan_layers(const Scenario& scenario, const ParallelConfig& config);

/// A strategy as trainers state it: one mode, and how many layers of each stage run which.
struct StatedPlan {
  Scenario scenario;      ///< with the lists of recomputed layers
  ParallelConfig config;  ///< with the mode that most recomputed layers run: full on a tie
};
/// The strategy itself with another recompute; the lists have one entry per stage. Same precondition.
[[nodiscard]] StatedPlan state_plan(const Scenario& scenario, const ParallelConfig& config);

}  // namespace nd
