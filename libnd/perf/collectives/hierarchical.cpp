// SPDX-License-Identifier: Apache-2.0
#include "perf/collectives/algorithms.hpp"
#include "perf/collectives/rates.hpp"

namespace nd::perf {

namespace {

/// Several tiers, each split into equal parts: otherwise there is no even shard per rank of a unit.
bool splits_evenly(const Placement& group, Levels levels) {
  int tiers = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    if (!crosses(group, l)) continue;
    if (group.inside[l] % ranks_below(group, l) != 0) return false;
    ++tiers;
  }
  return tiers > 1;
}

}  // namespace

bool hierarchical_applies(const CollectiveRequest& request, Levels levels) {
  const bool splits = request.kind == CollectiveKind::all_reduce || request.kind == CollectiveKind::all_gather ||
                      request.kind == CollectiveKind::reduce_scatter;
  return !request.flat && splits && splits_evenly(request.group, levels);
}

double hierarchical_seconds(const CollectiveRequest& request, Levels levels) {
  const Placement& group = request.group;
  const std::size_t widest = widest_level(group, levels);
  double seconds = 0;
  for (std::size_t l = 0; l <= widest; ++l) {
    if (!crosses(group, l)) continue;
    const std::int64_t below = ranks_below(group, l);
    const std::int64_t members = group.inside[l] / below;
    // All-reduce scatters and gathers in every tier but the widest, where it is one exchange.
    const double phases = request.kind == CollectiveKind::all_reduce && l != widest ? 2.0 : 1.0;
    const double units = l == 0 ? 1.0 : static_cast<double>(members);
    seconds += phases * latency_seconds(levels[l], ring_steps(members), units) +
               wire_bytes(request.kind, request.bytes / static_cast<double>(below), members) / rank_rate(request, levels, l);
  }
  return seconds;
}

}  // namespace nd::perf
