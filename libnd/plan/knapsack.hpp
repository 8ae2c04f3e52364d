// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace nd::plan {

/// The two moments of a step at which a stage may hold most: the end of the warm-up, with every micro-batch in flight, and the
/// end of a backward, where a trainer may hold gradients that it cannot reduce yet.
inline constexpr std::size_t kMoments = 2;
using MomentBytes = std::array<double, kMoments>;

/// One way to run a layer.
struct LayerOption {
  MomentBytes bytes{};  ///< what the layer holds at either moment, all micro-batches in flight
  double seconds = 0;   ///< what it costs, one micro-batch
};

/// Layers that are alike: same options, same micro-batches in flight.
struct LayerGroup {
  std::int64_t layers = 0;
  std::vector<LayerOption> options;
};

/// layers[group][option], and what that costs.
struct LayerChoice {
  std::vector<std::vector<std::int64_t>> layers;
  MomentBytes bytes{};
  double seconds = 0;
};

/// The fastest choice of one option per layer that stays within `budget` at both moments, the one with fewer bytes at the first
/// moment among equals; nullopt when not even the smallest fits. Exact: no rounding of bytes.
/// A multiple-choice knapsack (Kellerer, Pferschy, Pisinger, "Knapsack Problems", 2004, chapter 11), solved by merging the
/// groups' Pareto fronts (Nemhauser and Ullmann, 1969) and dropping what cannot fit or beat the best known.
/// Precondition: every group with layers has an option; seconds and bytes are finite and not negative.
[[nodiscard]] std::optional<LayerChoice> choose_options(std::span<const LayerGroup> groups, const MomentBytes& budget);

}  // namespace nd::plan
