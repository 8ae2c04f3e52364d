// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nd/potentials.hpp"
#include "nd/search.hpp"

namespace nd {

/// The potentials of ranked strategies.
struct RecomputePotentials {
  struct Strategy {
    std::int64_t rank = 0;
    ParallelConfig config;
    std::vector<RecomputeStep> steps;
  };
  std::vector<Strategy> strategies;
  Bytes budget{};
};
/// Of every candidate with a mode per layer.
[[nodiscard]] RecomputePotentials recompute_potentials(const Scenario& scenario, const std::vector<PricedCandidate>& candidates);
/// One row per plan. Columns: rank, step, degrees, changed layer, layers in full, memory, step time, what every layer does.
[[nodiscard]] std::string potentials_csv(const RecomputePotentials& potentials);
/// Memory against step time of all plans, as a self-contained SVG file; empty without a plan.
[[nodiscard]] std::string potentials_svg(const RecomputePotentials& potentials);

}  // namespace nd
