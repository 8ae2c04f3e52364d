// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "perf/collectives/collective.hpp"

// What a group can move through each tier; shared by the algorithms. docs/cost_model_time.md#collectives
namespace nd::perf {

/// Ranks of the group inside one unit of the tier below `level` (1 below the innermost).
[[nodiscard]] std::int64_t ranks_below(const Placement& group, std::size_t level);
/// Whether the group has more ranks in a unit of `level` than in one of the tier below: bytes cross this tier.
[[nodiscard]] bool crosses(const Placement& group, std::size_t level);
/// Outermost tier the group crosses. Precondition: more than one rank.
[[nodiscard]] std::size_t widest_level(const Placement& group, std::span<const TopologyLevel> levels);

/// Bytes/s one rank sends through `level` when all ranks of the unit send at once.
[[nodiscard]] double rank_rate(const CollectiveRequest& request, std::span<const TopologyLevel> levels, std::size_t level);
/// Bytes/s of a ring over the whole group: the slowest tier it crosses, from the widest down to the first with a bus figure of
/// its own. Across units the ring owns one link per rank it has in a unit, because the other groups of the unit use the rest
/// at the same time.
[[nodiscard]] double ring_rate(const CollectiveRequest& request, std::span<const TopologyLevel> levels);
/// Fixed seconds of one collective of `ranks` ranks whose widest tier is `level`, with `steps` ranks on its critical path inside
/// the unit and `units` units of the tier below.
[[nodiscard]] double latency_seconds(const TopologyLevel& level, double steps, double units);
/// min(n, 8): the in-unit part of the latency grows up to a node's worth of ranks.
[[nodiscard]] double ring_steps(std::int64_t ranks);

}  // namespace nd::perf
