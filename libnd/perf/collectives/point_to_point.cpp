// SPDX-License-Identifier: Apache-2.0
#include "perf/collectives/algorithms.hpp"
#include "perf/collectives/rates.hpp"

namespace nd::perf {

bool point_to_point_applies(const CollectiveRequest& request, Levels) { return request.kind == CollectiveKind::send_receive; }

double point_to_point_seconds(const CollectiveRequest& request, Levels levels) {
  const std::size_t widest = widest_level(request.group, levels);
  // In a full mesh two neighbours share one link, whatever the size of the group.
  CollectiveRequest pair = request;
  if (widest == 0 && levels[0].full_mesh) pair.group.inside[0] = 2;
  return levels[widest].latency.value + request.bytes / rank_rate(pair, levels, widest);
}

}  // namespace nd::perf
