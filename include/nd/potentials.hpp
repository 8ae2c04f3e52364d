// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "nd/parallel_config.hpp"
#include "nd/plan.hpp"
#include "nd/scenario.hpp"
#include "nd/units.hpp"

namespace nd {

/// One more layer recomputed in full.
struct RecomputeStep {
  PlannedLayers changed;            ///< the layer, with the mode it had; count 0: the plan that the sequence starts with
  std::int64_t full_layers = 0;     ///< layers recomputed in full now, MTP blocks included
  Seconds step{};
  Bytes peak{};                     ///< StageMemory::reserved of the heaviest stage
  std::vector<PlannedLayers> layers;
};

/// From the plan of a strategy with a mode per layer to full recompute everywhere: at each step the one layer more whose full
/// recomputation costs least time, and of those the one that frees most memory. The plan itself comes first; plans over the memory
/// budget are left out. O(layers x places) estimates. Precondition: the strategy is legal, its recompute is per_layer, full is
/// among run.layer_modes. docs/cost_model_plan.md#potentials
[[nodiscard]] std::vector<RecomputeStep> recompute_potentials(const Scenario& scenario, const ParallelConfig& config);

}  // namespace nd
