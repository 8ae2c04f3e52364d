// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/scenario.hpp"
#include "perf/collectives/collective.hpp"
#include "perf/part_seconds.hpp"

namespace nd::perf {

/// The data-parallel groups of a candidate and how gradients and weights travel through them.
struct DataParallelPlan {
  const Scenario* scenario = nullptr;
  ZeroLevel zero = ZeroLevel::none;
  Placement dense, expert;                 ///< all replicas of a dense / expert parameter
  std::int64_t dense_shard = 1, expert_shard = 1;  ///< ranks over which states (and more) are split
  double trained_share = 1;                ///< of the elements
};

/// Parameters of one rank, before any data-parallel sharding.
struct Elements {
  double dense = 0, expert = 0;
};

[[nodiscard]] DataParallelPlan data_parallel_plan(const Scenario& scenario, const ParallelConfig& config, double trained_share);

/// Seconds on the wire of the exchange once per step.
struct ExchangeSeconds {
  double reduce = 0, gather = 0;
};
[[nodiscard]] ExchangeSeconds exchange_seconds(const DataParallelPlan& plan, const Elements& elements);

/// Once per step: gradients to DP_REDUCE, weights back to DP_COMM, exposed beyond what the last backward / the next first
/// forward of the stage can hide. With parameter sharding only the all-reduce over copies of the shards is left. docs/cost_model_time.md#data-parallel
[[nodiscard]] PartSeconds step_exchange_of(const DataParallelPlan& plan, const ExchangeSeconds& wanted, double backward_window,
                                           double forward_window);
[[nodiscard]] PartSeconds step_exchange(const DataParallelPlan& plan, const Elements& elements, double backward_window,
                                        double forward_window);

/// Per layer and micro-batch with parameter sharding (ZeRO-3, FSDP): gathers before forward and backward, gradients after it.
/// `forward` and `backward` are the seconds of the layer that hide them. docs/cost_model_time.md#parameter-sharding
struct ShardedPasses {
  PartSeconds forward, backward;
};
[[nodiscard]] ShardedPasses sharded_passes(const DataParallelPlan& plan, const Elements& elements, double forward, double backward);

/// Seconds of the optimizer's pass over its states: bytes of the shard / memory rate. docs/cost_model_time.md#optimizer
[[nodiscard]] double optimizer_seconds(const DataParallelPlan& plan, const Elements& elements, double memory_rate);

}  // namespace nd::perf
