// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "perf/collectives/algorithms.hpp"
#include "perf/collectives/rates.hpp"

namespace nd::perf {

namespace {

/// Latency of one exchange over the widest tier of the group.
double exchange_latency(const CollectiveRequest& request, Levels levels) {
  const Placement& group = request.group;
  const std::size_t widest = widest_level(group, levels);
  const double units = static_cast<double>(group.ranks) / static_cast<double>(ranks_below(group, widest));
  return latency_seconds(levels[widest], ring_steps(group.ranks), widest == 0 ? 1.0 : units);
}

}  // namespace

bool direct_applies(const CollectiveRequest& request, Levels) { return request.kind == CollectiveKind::all_to_all; }

double direct_seconds(const CollectiveRequest& request, Levels levels) {
  const Placement& group = request.group;
  double slowest = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    if (!crosses(group, l)) continue;
    const double share = static_cast<double>(group.inside[l] - ranks_below(group, l)) / static_cast<double>(group.ranks);
    slowest = std::max(slowest, request.bytes * share / rank_rate(request, levels, l));
  }
  return exchange_latency(request, levels) + slowest;
}

bool deduplicating_applies(const CollectiveRequest& request, Levels levels) {
  return request.kind == CollectiveKind::all_to_all && request.copies_per_token > 1 && widest_level(request.group, levels) > 0;
}

double deduplicating_seconds(const CollectiveRequest& request, Levels levels) {
  const Placement& group = request.group;
  const std::size_t widest = widest_level(group, levels);
  const auto ranks = static_cast<double>(group.ranks);
  const auto below = static_cast<double>(ranks_below(group, widest));
  const auto copies = static_cast<double>(request.copies_per_token);
  const double units = ranks / below;
  // A token reaches units (1 - (1 - 1/units)^copies) distinct units on average, all but 1/units of them remote; `bytes` holds
  // `copies` copies of it.
  const double remote = units * (1.0 - std::pow(1.0 - 1.0 / units, copies)) * (1.0 - 1.0 / units) / copies;
  // Their kernels drive every adapter with messages of their own, at the rate of those, not of the library's exchange.
  CollectiveRequest message = request;
  message.kind = CollectiveKind::send_receive;
  double slowest = request.bytes * remote / rank_rate(message, levels, widest);
  // Inside the unit every copy is delivered, those that arrived from outside included.
  for (std::size_t l = 0; l < widest; ++l) {
    if (!crosses(group, l)) continue;
    const double share = static_cast<double>(group.inside[l] - ranks_below(group, l)) / below;
    slowest = std::max(slowest, request.bytes * share / rank_rate(request, levels, l));
  }
  return exchange_latency(request, levels) + slowest;
}

}  // namespace nd::perf
