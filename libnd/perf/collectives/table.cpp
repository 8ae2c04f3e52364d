// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "nd/result.hpp"
#include "perf/collectives/algorithms.hpp"

namespace nd::perf {

namespace {

constexpr std::array kAlgorithms{
    CollectiveAlgorithm{"ring", ring_applies, ring_seconds},
    CollectiveAlgorithm{"tree", tree_applies, tree_seconds},
    CollectiveAlgorithm{"hierarchical", hierarchical_applies, hierarchical_seconds},
    CollectiveAlgorithm{"direct", direct_applies, direct_seconds},
    CollectiveAlgorithm{"deduplicating", deduplicating_applies, deduplicating_seconds},
    CollectiveAlgorithm{"point_to_point", point_to_point_applies, point_to_point_seconds},
    CollectiveAlgorithm{"flat", flat_applies, flat_seconds},
};

}  // namespace

std::span<const CollectiveAlgorithm> collective_algorithms() { return kAlgorithms; }

Placement make_placement(const layout::GroupPlacement& group) {
  ND_CHECK(group.inside.size() <= kMaxLevels);
  Placement placement;
  placement.ranks = group.ranks;
  placement.inside.fill(group.ranks);
  std::copy(group.inside.begin(), group.inside.end(), placement.inside.begin());
  return placement;
}

Placement inner_part(const Placement& group, std::int64_t ranks) {
  Placement part = group;
  part.ranks = std::min(group.ranks, ranks);
  for (auto& inside : part.inside) inside = std::min(inside, part.ranks);
  return part;
}

Placement outer_part(const Placement& group, std::int64_t inner_ranks) {
  Placement part = group;
  const std::int64_t inner = std::max<std::int64_t>(1, inner_ranks);
  part.ranks = std::max<std::int64_t>(1, group.ranks / inner);
  for (auto& inside : part.inside) inside = std::clamp<std::int64_t>(inside / inner, 1, part.ranks);
  return part;
}

double wire_bytes(CollectiveKind kind, double bytes, std::int64_t ranks) {
  if (ranks <= 1) return 0;
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2.0 * bytes * (n - 1.0) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return bytes * (n - 1.0) / n;
    case CollectiveKind::send_receive:
    case CollectiveKind::broadcast:
      break;
  }
  return bytes;
}

double collective_seconds(const CollectiveRequest& request, std::span<const TopologyLevel> levels) {
  if (request.group.ranks <= 1 || request.bytes <= 0 || levels.empty()) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (const auto& algorithm : kAlgorithms) {
    if (algorithm.applies(request, levels)) best = std::min(best, algorithm.seconds(request, levels));
  }
  return best;
}

}  // namespace nd::perf
