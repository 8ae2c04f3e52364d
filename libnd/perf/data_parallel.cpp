// SPDX-License-Identifier: Apache-2.0
#include "perf/data_parallel.hpp"

#include <algorithm>
#include <optional>

namespace nd::perf {

namespace {

constexpr double kBuckets = 8;  ///< messages a gradient exchange is cut into [assumed; decides the latency share only]
/// Optimizer bytes per trained element on every rank: unscale and cast of gradients and weights [counted].
constexpr double kUnshardedOptimizerBytes = 6;

/// Bytes per element the optimizer moves less than AdamW with fp32 states (read and write of what is missing).
double state_bytes_saved(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
      return 0;
    case OptimizerKind::adamw_bf16_states:
      return 8;  // two states of 2 instead of 4 bytes
    case OptimizerKind::adamw_8bit:
      return 12;  // two states of 1 byte
    case OptimizerKind::sgd:
    case OptimizerKind::muon:
      return 8;  // one state
  }
  return 0;
}

/// States kept in host memory come in and go out again in every step, all devices of a node at once. The rates are those of that
/// case; the two directions share the host's memory and take turns.
double host_copy_seconds(const std::optional<HostLink>& link, double bytes) {
  if (bytes <= 0 || !link || link->h2d.value <= 0 || link->d2h.value <= 0) return 0;
  return bytes / link->h2d.value + bytes / link->d2h.value;
}

/// How one class of parameters is exchanged.
struct Exchange {
  const DataParallelPlan* plan;
  Placement group;
  std::int64_t shard;

  [[nodiscard]] double seconds(CollectiveKind kind, double bytes, const Placement& ranks) const {
    CollectiveRequest request{.kind = kind, .bytes = bytes / kBuckets, .group = ranks, .flat = plan->scenario->profile.time.flat_gather};
    return kBuckets * collective_seconds(request, plan->scenario->cluster.device.levels);
  }
  [[nodiscard]] double one(CollectiveKind kind, double bytes) const {
    CollectiveRequest request{.kind = kind, .bytes = bytes, .group = inner_part(group, shard), .flat = plan->scenario->profile.time.flat_gather};
    return collective_seconds(request, plan->scenario->cluster.device.levels);
  }
  /// Gradients of `elements`: all-reduce, or reduce-scatter over the shards and all-reduce of the shard over their copies.
  /// With parameter sharding the first half is done layer by layer.
  [[nodiscard]] double per_step(double elements) const {
    const double bytes = elements * plan->scenario->profile.time.reduce_bytes;
    if (plan->zero == ZeroLevel::none) return seconds(CollectiveKind::all_reduce, bytes, group);
    if (plan->zero == ZeroLevel::parameters) return over_copies(bytes);
    return seconds(CollectiveKind::reduce_scatter, bytes, inner_part(group, shard)) + over_copies(bytes);
  }
  [[nodiscard]] double over_copies(double bytes) const {
    return seconds(CollectiveKind::all_reduce, bytes / static_cast<double>(shard), outer_part(group, shard));
  }
  /// Updated weights back to every rank.
  [[nodiscard]] double gather(double elements) const {
    if (plan->zero == ZeroLevel::none || plan->zero == ZeroLevel::parameters || shard <= 1 || elements <= 0) return 0;
    const TimeProfile& time = plan->scenario->profile.time;
    // An optimizer that broadcasts shard by shard pays for every rank of the group, however small the shard.
    if (time.broadcast_per_rank_ms > 0) return time.broadcast_per_rank_ms * 1e-3 * static_cast<double>(shard);
    return seconds(CollectiveKind::all_gather, elements * time.gather_bytes, inner_part(group, shard));
  }
};

/// Splits `wanted` seconds of communication into hidden and exposed; what hides slows the compute beside it, and that loss is
/// charged to the communication.
void hide(double wanted, double window, double floor_share, double slowdown, double& exposed, double& hidden) {
  const double hidden_seconds = std::clamp(window, 0.0, wanted * (1.0 - floor_share));
  exposed += wanted - hidden_seconds + slowdown * hidden_seconds;
  hidden += hidden_seconds;
}

}  // namespace

DataParallelPlan data_parallel_plan(const Scenario& scenario, const ParallelConfig& config, double trained_share) {
  DataParallelPlan plan;
  plan.scenario = &scenario;
  plan.zero = config.zero;
  plan.dense = make_placement(layout::place_group(scenario, config, GroupKind::dp));
  plan.expert = make_placement(layout::place_group(scenario, config, GroupKind::expert_dp));
  if (config.zero != ZeroLevel::none) {
    plan.dense_shard = std::clamp<std::int64_t>(config.op, 1, plan.dense.ranks);
    // The shards of the experts are the same ranks as far as they hold the same experts.
    plan.expert_shard = std::max<std::int64_t>(1, plan.expert.ranks * plan.dense_shard / plan.dense.ranks);
  }
  plan.trained_share = trained_share;
  return plan;
}

ExchangeSeconds exchange_seconds(const DataParallelPlan& plan, const Elements& elements) {
  const Exchange dense{&plan, plan.dense, plan.dense_shard};
  const Exchange expert{&plan, plan.expert, plan.expert_shard};
  const double share = plan.trained_share;
  return {.reduce = dense.per_step(elements.dense * share) + expert.per_step(elements.expert * share),
          .gather = dense.gather(elements.dense * share) + expert.gather(elements.expert * share)};
}

PartSeconds step_exchange(const DataParallelPlan& plan, const Elements& elements, double backward_window, double forward_window) {
  return step_exchange_of(plan, exchange_seconds(plan, elements), backward_window, forward_window);
}

PartSeconds step_exchange_of(const DataParallelPlan& plan, const ExchangeSeconds& wanted, double backward_window, double forward_window) {
  const TimeProfile& time = plan.scenario->profile.time;
  const double slowdown = plan.scenario->cluster.device.compute.overlap_slowdown;
  const bool gather_overlaps = time.overlap_gradient && time.overlap_gather && time.broadcast_per_rank_ms <= 0;

  PartSeconds parts;
  hide(wanted.reduce, time.overlap_gradient ? time.dp_overlap * backward_window : 0.0, time.dp_exposed_floor, slowdown,
       parts.at(TimePart::dp_reduce), parts.hidden_at(TimePart::dp_reduce));
  hide(wanted.gather, gather_overlaps ? time.dp_overlap * forward_window : 0.0, time.dp_exposed_floor, slowdown,
       parts.at(TimePart::dp_comm), parts.hidden_at(TimePart::dp_comm));
  return parts;
}

ShardedPasses sharded_passes(const DataParallelPlan& plan, const Elements& elements, double forward, double backward) {
  const Scenario& scenario = *plan.scenario;
  const TimeProfile& time = scenario.profile.time;
  const double slowdown = scenario.cluster.device.compute.overlap_slowdown;
  const Exchange dense{&plan, plan.dense, plan.dense_shard};
  const Exchange expert{&plan, plan.expert, plan.expert_shard};
  // Frozen weights are gathered as they are stored; only trained elements have gradients to reduce.
  const double gather_bytes = scenario.run.frozen_base ? std::min(time.gather_bytes, scenario.run.base_weight_bytes) : time.gather_bytes;
  const double gather = dense.one(CollectiveKind::all_gather, elements.dense * gather_bytes) +
                        expert.one(CollectiveKind::all_gather, elements.expert * gather_bytes);
  const double reduce_bytes = time.reduce_bytes * plan.trained_share;
  const double reduce = dense.one(CollectiveKind::reduce_scatter, elements.dense * reduce_bytes) +
                        expert.one(CollectiveKind::reduce_scatter, elements.expert * reduce_bytes);

  ShardedPasses passes;
  hide(gather, time.fsdp_overlap * forward, 0.0, slowdown, passes.forward.at(TimePart::dp_comm), passes.forward.hidden_at(TimePart::dp_comm));
  // Gather and reduce share the backward in proportion.
  const double both = gather + reduce;
  const double window = both > 0 ? time.fsdp_overlap * backward / both : 0.0;
  hide(gather, window * gather, 0.0, slowdown, passes.backward.at(TimePart::dp_comm), passes.backward.hidden_at(TimePart::dp_comm));
  hide(reduce, window * reduce, 0.0, slowdown, passes.backward.at(TimePart::dp_reduce), passes.backward.hidden_at(TimePart::dp_reduce));
  return passes;
}

double optimizer_seconds(const DataParallelPlan& plan, const Elements& elements, double memory_rate) {
  const TimeProfile& time = plan.scenario->profile.time;
  const double dense = elements.dense * plan.trained_share;
  const double expert = elements.expert * plan.trained_share;
  const double sharded = dense / static_cast<double>(plan.dense_shard) + expert / static_cast<double>(plan.expert_shard);
  // From gradient sharding on, no rank holds gradients beyond its shard.
  const double touched = plan.zero >= ZeroLevel::gradients ? sharded : dense + expert;
  const double state_bytes = std::max(0.0, time.optimizer_bytes - state_bytes_saved(plan.scenario->run.optimizer));
  return (state_bytes * sharded + kUnshardedOptimizerBytes * touched) / memory_rate +
         host_copy_seconds(plan.scenario->cluster.device.host_link, time.optimizer_host_bytes * sharded);
}

}  // namespace nd::perf
