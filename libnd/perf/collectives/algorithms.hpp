// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "perf/collectives/collective.hpp"

// One pair (applies, seconds) per algorithm; each lives in the file of its name. table.cpp lists them.
namespace nd::perf {

using Levels = std::span<const TopologyLevel>;

/// One ring through all ranks: wire bytes / slowest tier.
[[nodiscard]] bool ring_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double ring_seconds(const CollectiveRequest& request, Levels levels);
/// Reduce up and broadcast down a tree: all of S both ways, fewer steps. All-reduce only.
[[nodiscard]] bool tree_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double tree_seconds(const CollectiveRequest& request, Levels levels);
/// Tier by tier: scatter inside, exchange the shards across, gather inside; every rank uses its own link of the outer tier.
[[nodiscard]] bool hierarchical_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double hierarchical_seconds(const CollectiveRequest& request, Levels levels);
/// Every rank sends every other its share at once; the tiers work side by side. All-to-all only.
[[nodiscard]] bool direct_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double direct_seconds(const CollectiveRequest& request, Levels levels);
/// As direct, but a token crosses to a unit once however many of its experts live there (DeepEP, HybridEP).
[[nodiscard]] bool deduplicating_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double deduplicating_seconds(const CollectiveRequest& request, Levels levels);
/// One message to a neighbour over the widest tier of the group.
[[nodiscard]] bool point_to_point_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double point_to_point_seconds(const CollectiveRequest& request, Levels levels);
/// Every rank receives the whole buffer through its own link of the widest tier.
[[nodiscard]] bool flat_applies(const CollectiveRequest& request, Levels levels);
[[nodiscard]] double flat_seconds(const CollectiveRequest& request, Levels levels);

}  // namespace nd::perf
