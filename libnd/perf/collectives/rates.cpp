// SPDX-License-Identifier: Apache-2.0
#include "perf/collectives/rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nd::perf {

namespace {

constexpr std::int64_t kLatencyRanks = 8;  ///< ranks beyond which the in-unit latency stays [fitted with nodes of 8]

double bus_factor(const TopologyLevel& level, CollectiveKind kind) { return level.bus_factor[static_cast<std::size_t>(kind)]; }

/// Without a switch a group of n ranks owns n-1 of the N-1 links of a rank.
double mesh_share(const TopologyLevel& level, std::int64_t ranks) {
  if (!level.full_mesh || level.devices <= 1) return 1.0;
  return std::min(1.0, static_cast<double>(ranks - 1) / static_cast<double>(level.devices - 1));
}

/// Ring bandwidth inside the innermost tier.
double inner_rate(const TopologyLevel& level, CollectiveKind kind, std::int64_t ranks) {
  const double bus = level.bus.value > 0 ? level.bus.value : level.bandwidth.value;
  return bus * level.efficiency * bus_factor(level, kind) * mesh_share(level, ranks);
}

/// Whether the bus figure of a tier is one of a ring through all of it, the tiers inside included. That of an unbounded tier
/// depends on how many nodes and links the benchmark had; there only the line rate is read.
bool bus_is_measured(const TopologyLevel& level) { return level.bus.value > 0 && level.devices > 0; }

/// Bandwidth of `links` links of an outer tier.
double outer_rate(const TopologyLevel& level, CollectiveKind kind, double links) {
  double rate = level.bandwidth.value > 0 ? level.bandwidth.value * links : std::numeric_limits<double>::infinity();
  if (bus_is_measured(level) || level.bandwidth.value <= 0) rate = std::min(rate, level.bus.value);
  return rate * level.efficiency * bus_factor(level, kind);
}

}  // namespace

std::int64_t ranks_below(const Placement& group, std::size_t level) { return level == 0 ? 1 : group.inside[level - 1]; }

bool crosses(const Placement& group, std::size_t level) { return group.inside[level] > ranks_below(group, level); }

std::size_t widest_level(const Placement& group, std::span<const TopologyLevel> levels) {
  std::size_t level = 0;
  while (level + 1 < levels.size() && group.inside[level] < group.ranks) ++level;
  return level;
}

double rank_rate(const CollectiveRequest& request, std::span<const TopologyLevel> levels, std::size_t level) {
  return level == 0 ? inner_rate(levels[0], request.kind, request.group.inside[0]) : outer_rate(levels[level], request.kind, 1.0);
}

double ring_rate(const CollectiveRequest& request, std::span<const TopologyLevel> levels) {
  double rate = std::numeric_limits<double>::infinity();
  for (std::size_t l = widest_level(request.group, levels) + 1; l-- > 0;) {
    if (!crosses(request.group, l)) continue;
    const double tier = l == 0 ? inner_rate(levels[0], request.kind, request.group.inside[0])
                               : outer_rate(levels[l], request.kind, static_cast<double>(ranks_below(request.group, l)));
    rate = std::min(rate, tier);
    if (bus_is_measured(levels[l])) break;
  }
  return rate;
}

double latency_seconds(const TopologyLevel& level, double steps, double units) {
  return level.latency.value + level.latency_per_rank.value * steps + level.latency_per_doubling.value * std::log2(std::max(1.0, units));
}

double ring_steps(std::int64_t ranks) { return static_cast<double>(std::min(ranks, kLatencyRanks)); }

}  // namespace nd::perf
