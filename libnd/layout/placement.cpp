// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/text.hpp"
#include "layout/layout.hpp"

namespace nd::layout {

namespace {

/// Ranks of one dimension of the rank order ("tp", "cp", "ep", "dp", "pp").
std::int64_t degree_of(const ParallelConfig& config, const std::string& dim) {
  if (dim == "tp") return config.tp;
  if (dim == "cp") return config.cp;
  if (dim == "dp") return config.dp;
  if (dim == "pp") return config.pp;
  return 1;  // ep is no dimension of its own in the order: it is taken out of tp, cp and dp
}

/// Product of the degrees inside of `dim` in the framework's rank order.
std::int64_t stride_of(const ParallelConfig& config, const std::string& order, const std::string& dim) {
  std::int64_t stride = 1;
  for (const auto& inner : core::split(order, '-')) {
    if (inner == dim) break;
    stride *= degree_of(config, inner);
  }
  return stride;
}

/// Ranks of a group with `ranks` members `stride` apart that share one aligned unit of `unit` consecutive ranks.
std::int64_t ranks_inside(std::int64_t ranks, std::int64_t stride, std::int64_t unit) {
  if (unit <= 0) return ranks;
  return std::clamp<std::int64_t>(unit / stride, 1, ranks);
}

}  // namespace

GroupPlacement place_group(const Scenario& scenario, const ParallelConfig& config, GroupKind group) {
  const std::string& order = scenario.profile.can.rank_order;
  GroupPlacement placement;
  switch (group) {
    case GroupKind::tp:
      placement.ranks = config.tp;
      placement.stride = stride_of(config, order, "tp");
      break;
    case GroupKind::cp:
      placement.ranks = config.cp;
      placement.stride = stride_of(config, order, "cp");
      break;
    case GroupKind::dp:
      // Gradients are reduced over dp and cp together; cp is the inner of the two.
      placement.ranks = std::int64_t{config.dp} * config.cp;
      placement.stride = std::min(stride_of(config, order, "cp"), stride_of(config, order, "dp"));
      break;
    case GroupKind::pp:
      placement.ranks = config.pp;
      placement.stride = stride_of(config, order, "pp");
      break;
    case GroupKind::etp:
      // Expert tensor parallelism takes the innermost ranks, as tp does.
      placement.ranks = config.etp;
      placement.stride = 1;
      break;
    case GroupKind::ep:
      // ep ranks follow right outside etp within the dp * cp * tp ranks of a stage.
      placement.ranks = config.ep;
      placement.stride = config.etp;
      break;
    case GroupKind::expert_dp:
      placement.ranks = config.expert_dp();
      placement.stride = std::int64_t{config.ep} * config.etp;
      break;
  }
  // With pp inside dp (an order that ends in dp) the ranks of a stage are not consecutive: distances stretch accordingly.
  if ((group == GroupKind::ep || group == GroupKind::expert_dp) && stride_of(config, order, "pp") < stride_of(config, order, "dp") &&
      placement.stride >= stride_of(config, order, "pp"))
    placement.stride *= config.pp;
  for (const auto& level : scenario.cluster.device.levels)
    placement.inside.push_back(ranks_inside(placement.ranks, placement.stride, level.devices));
  return placement;
}

}  // namespace nd::layout
