// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "layout/layout.hpp"
#include "nd/device.hpp"

namespace nd::perf {

/// More tiers than any machine has; lets a placement live on the stack.
inline constexpr std::size_t kMaxLevels = 6;

/// layout::GroupPlacement without its vector: cheap to copy, usable as a key. inside[l] is cumulative; entries past the last
/// level repeat `ranks`.
struct Placement {
  std::int64_t ranks = 1;
  std::array<std::int64_t, kMaxLevels> inside{};
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Throws InternalError when the placement has more than kMaxLevels levels.
[[nodiscard]] Placement make_placement(const layout::GroupPlacement& group);
/// The innermost `ranks` members of a group, and the group of those that share an index in its `parts` copies.
[[nodiscard]] Placement inner_part(const Placement& group, std::int64_t ranks);
[[nodiscard]] Placement outer_part(const Placement& group, std::int64_t inner_ranks);

/// One collective. `bytes` as CollectiveWork states them.
struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
  Placement group{};
  std::int64_t copies_per_token = 0;  ///< all-to-all that sends a token once per unit: experts per token; 0 = plain
  bool flat = false;                  ///< every rank receives all of it through its own link (ZeRO-3 of 2021)
};

/// One row of the algorithm table.
struct CollectiveAlgorithm {
  std::string_view name;
  bool (*applies)(const CollectiveRequest&, std::span<const TopologyLevel>);
  double (*seconds)(const CollectiveRequest&, std::span<const TopologyLevel>);  ///< only where it applies
};
[[nodiscard]] std::span<const CollectiveAlgorithm> collective_algorithms();

/// Bytes every rank puts on the wire with a bandwidth-optimal algorithm: all-reduce 2 S (n-1)/n; all-gather, reduce-scatter
/// and all-to-all S (n-1)/n; broadcast and send/receive S. 0 in a group of one.
[[nodiscard]] double wire_bytes(CollectiveKind kind, double bytes, std::int64_t ranks);

/// Seconds of the fastest algorithm that applies. 0 for a group of one or an empty buffer.
[[nodiscard]] double collective_seconds(const CollectiveRequest& request, std::span<const TopologyLevel> levels);

}  // namespace nd::perf
