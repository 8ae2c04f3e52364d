// SPDX-License-Identifier: Apache-2.0
#include "perf/collectives/algorithms.hpp"
#include "perf/collectives/rates.hpp"

namespace nd::perf {

bool flat_applies(const CollectiveRequest& request, Levels) { return request.flat && request.kind != CollectiveKind::all_to_all; }

double flat_seconds(const CollectiveRequest& request, Levels levels) {
  const Placement& group = request.group;
  const std::size_t widest = widest_level(group, levels);
  const double units = static_cast<double>(group.ranks) / static_cast<double>(ranks_below(group, widest));
  return latency_seconds(levels[widest], ring_steps(group.ranks), widest == 0 ? 1.0 : units) +
         wire_bytes(request.kind, request.bytes, group.ranks) / rank_rate(request, levels, widest);
}

}  // namespace nd::perf
