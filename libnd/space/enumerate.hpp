// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "nd/search_space.hpp"
#include "space/context.hpp"

namespace nd::space {

/// Where a combination ended: how many dimensions had been accepted before, and why it went no further.
struct Obstacle {
  std::size_t depth = 0;            ///< position of the dimension that ended it
  std::optional<Rejection> reason;  ///< nothing: the conditions on this dimension admit no value of its domain
  ParallelConfig config;
};

/// What became of the combinations. A combination that already fails on its first degrees counts once, not once for every
/// completion. enumerated = legal + the sum of `rejected`.
struct SpaceCounts {
  std::int64_t enumerated = 0, legal = 0;
  std::array<std::int64_t, kRejectionCount> rejected{};
  /// First combination that was rejected for the reason; later degrees are still 1.
  std::array<std::optional<ParallelConfig>, kRejectionCount> example{};
  /// The combination that came furthest: what stands in the way where nothing is legal. The many that fall earlier only say
  /// that other values of the free dimensions do not help either.
  std::optional<Obstacle> furthest;
};

/// Called for every legal strategy; false ends the enumeration.
using StrategySink = std::function<bool(const ParallelConfig&)>;

/// Visits the legal strategies of `space` in the order of its values, first dimension outermost. Deterministic.
/// What is no dimension (the context-parallel algorithm) comes from the run.
SpaceCounts enumerate(const SpaceContext& context, const SearchSpace& space, const StrategySink& sink);

/// The dimensions [first, last) of the order of enumeration.
struct DimensionRange {
  std::size_t first = 0, last = kDimensionCount;
};
/// Visits what `start` can be completed to within `range`; the dimensions before keep the values of `start`, those behind it
/// theirs. Adds to `counts`; `legal` counts visits. False when the sink ended it.
bool enumerate_range(const SpaceContext& context, const SearchSpace& space, const ParallelConfig& start, const DimensionRange& range,
                     const StrategySink& sink, SpaceCounts& counts);
/// Where every enumeration starts: no degree chosen, what is no dimension taken from the run.
[[nodiscard]] ParallelConfig first_strategy(const SpaceContext& context);

/// The first rule that `config` breaks.
[[nodiscard]] std::optional<Rejection> violation(const SpaceContext& context, const ParallelConfig& config);

}  // namespace nd::space
