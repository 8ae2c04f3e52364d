// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "perf/collectives/algorithms.hpp"
#include "perf/collectives/rates.hpp"

namespace nd::perf {

bool tree_applies(const CollectiveRequest& request, Levels) { return !request.flat && request.kind == CollectiveKind::all_reduce; }

double tree_seconds(const CollectiveRequest& request, Levels levels) {
  const Placement& group = request.group;
  const std::size_t widest = widest_level(group, levels);
  const double units = static_cast<double>(group.ranks) / static_cast<double>(ranks_below(group, widest));
  const double steps = 1.0 + std::log2(ring_steps(group.ranks));  // 2 ranks: 2, as in the ring
  return latency_seconds(levels[widest], steps, widest == 0 ? 1.0 : units) + 2.0 * request.bytes / ring_rate(request, levels);
}

}  // namespace nd::perf
