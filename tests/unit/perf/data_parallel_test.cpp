// SPDX-License-Identifier: Apache-2.0
#include "perf/data_parallel.hpp"

#include <catch2/catch.hpp>

#include "unit/perf/fixtures.hpp"

namespace nd::perf {
namespace {

using namespace perf_test;

constexpr double kElements = 1e9;
constexpr double kNic = 25e9 * 0.85;

/// A100 machines without latencies, dp ranks with tp 8 around each: one rank and one NIC per node.
Scenario scenario_without_latency(FrameworkProfile profile = fused_trainer()) {
  profile.time.dp_exposed_floor = 0;
  DeviceType device = a100();
  for (TopologyLevel& level : device.levels) level.latency = level.latency_per_rank = level.latency_per_doubling = {};
  return scenario_of(llama(32, 4096, 11008, 32, 32), device, profile, 64, 4096);
}

ParallelConfig config_of(int dp, ZeroLevel zero, int op) {
  ParallelConfig config;
  config.dp = dp;
  config.tp = 8;
  config.zero = zero;
  config.op = op;
  return config;
}

double reduce_seconds(const PartSeconds& parts) { return parts.at(TimePart::dp_reduce); }
double gather_seconds(const PartSeconds& parts) { return parts.at(TimePart::dp_comm); }

}  // namespace

TEST_CASE("gradients are reduced once per step, weights come back with sharded states", "[perf][dp]") {
  const Scenario scenario = scenario_without_latency();
  // Plain: all-reduce of 2 bytes per element over 8 nodes: 2 * 7/8 * 2 GB / 21.25 GB/s = 164.7 ms (8 buckets change nothing
  // without latency; the tree moves 2 * 2 GB and loses).
  const PartSeconds plain = step_exchange(data_parallel_plan(scenario, config_of(8, ZeroLevel::none, 1), 1), {kElements, 0}, 0, 0);
  CHECK(reduce_seconds(plain) == Approx(1.75 * 2e9 / kNic));
  CHECK(gather_seconds(plain) == 0);
  // Sharded states: reduce-scatter and all-gather of 2 bytes each: the same volume in two halves.
  const PartSeconds zero1 = step_exchange(data_parallel_plan(scenario, config_of(8, ZeroLevel::optimizer, 8), 1), {kElements, 0}, 0, 0);
  CHECK(reduce_seconds(zero1) == Approx(0.875 * 2e9 / kNic));
  CHECK(gather_seconds(zero1) == Approx(0.875 * 2e9 / kNic));
}

TEST_CASE("states sharded over part of the replicas: the shards are summed over their copies", "[perf][dp]") {
  const Scenario scenario = scenario_without_latency();
  const PartSeconds parts = step_exchange(data_parallel_plan(scenario, config_of(8, ZeroLevel::optimizer, 4), 1), {kElements, 0}, 0, 0);
  // Reduce-scatter over 4: 3/4 * 2 GB; all-reduce of a quarter over 2 copies: 2 * 1/2 * 0.5 GB.
  CHECK(reduce_seconds(parts) == Approx((0.75 * 2e9 + 0.5e9) / kNic));
  CHECK(gather_seconds(parts) == Approx(0.75 * 2e9 / kNic));
}

TEST_CASE("an exchange hides behind the last backward and what hides slows it", "[perf][dp]") {
  FrameworkProfile profile = fused_trainer();
  profile.time.overlap_gather = false;
  const Scenario scenario = scenario_without_latency(profile);
  const DataParallelPlan plan = data_parallel_plan(scenario, config_of(8, ZeroLevel::none, 1), 1);
  const double wanted = 1.75 * 2e9 / kNic;
  // Window 50 ms, 0.8 of it usable: 40 ms hidden, 0.27 * 40 ms lost by the compute.
  const PartSeconds parts = step_exchange(plan, {kElements, 0}, 50e-3, 0);
  CHECK(parts.hidden_at(TimePart::dp_reduce) == Approx(40e-3));
  CHECK(reduce_seconds(parts) == Approx(wanted - 40e-3 + 0.27 * 40e-3));
  // A large window hides all but the slowdown, and the floor.
  CHECK(reduce_seconds(step_exchange(plan, {kElements, 0}, 10, 0)) == Approx(0.27 * wanted));
  Scenario floored = scenario;
  floored.profile.time.dp_exposed_floor = 0.05;
  CHECK(reduce_seconds(step_exchange(data_parallel_plan(floored, config_of(8, ZeroLevel::none, 1), 1), {kElements, 0}, 10, 0)) ==
        Approx((0.05 + 0.95 * 0.27) * wanted));
  Scenario apart = scenario;
  apart.profile.time.overlap_gradient = false;
  CHECK(reduce_seconds(step_exchange(data_parallel_plan(apart, config_of(8, ZeroLevel::none, 1), 1), {kElements, 0}, 10, 0)) == Approx(wanted));
}

TEST_CASE("the gradient exchange feels how many nodes there are and which NICs it owns", "[perf][dp]") {
  const Scenario scenario = scenario_without_latency();
  const auto seconds = [&](int dp, int tp) {
    ParallelConfig config = config_of(dp, ZeroLevel::none, 1);
    config.tp = tp;
    return reduce_seconds(step_exchange(data_parallel_plan(scenario, config, 1), {kElements, 0}, 0, 0));
  };
  CHECK(seconds(8, 1) < seconds(2, 8));    // inside a node against across two
  CHECK(seconds(2, 8) < seconds(64, 8));   // two nodes against 64
  CHECK(seconds(64, 1) < seconds(64, 8));  // eight NICs against one
}

TEST_CASE("expert gradients go over the replicas of the expert", "[perf][dp]") {
  const Scenario scenario = scenario_without_latency();
  ParallelConfig config = config_of(8, ZeroLevel::none, 1);
  config.ep = 32;  // 64 ranks / 32 = 2 replicas, 32 ranks apart: one per 4 nodes
  const DataParallelPlan plan = data_parallel_plan(scenario, config, 1);
  CHECK(plan.expert.ranks == 2);
  CHECK(plan.expert.inside[0] == 1);
  CHECK(reduce_seconds(step_exchange(plan, {0, kElements}, 0, 0)) == Approx(2e9 / kNic));
}

TEST_CASE("parameter sharding gathers before both passes and reduces after the backward", "[perf][dp]") {
  const Scenario scenario = scenario_without_latency();
  const DataParallelPlan plan = data_parallel_plan(scenario, config_of(8, ZeroLevel::parameters, 8), 1);
  const double one = 0.875 * 2e9 / kNic;
  const ShardedPasses bare = sharded_passes(plan, {kElements, 0}, 0, 0);
  CHECK(bare.forward.at(TimePart::dp_comm) == Approx(one));
  CHECK(bare.backward.at(TimePart::dp_comm) == Approx(one));
  CHECK(bare.backward.at(TimePart::dp_reduce) == Approx(one));
  // Nothing is left for the end of the step.
  CHECK(step_exchange(plan, {kElements, 0}, 0, 0).total() == 0);
  // Behind a layer of 20 ms forward, 40 ms backward: 0.8 of each hides.
  const ShardedPasses hidden = sharded_passes(plan, {kElements, 0}, 20e-3, 40e-3);
  CHECK(hidden.forward.at(TimePart::dp_comm) == Approx(one - 16e-3 + 0.27 * 16e-3));
  CHECK(hidden.backward.total() == Approx(2 * one - 32e-3 + 0.27 * 32e-3));
}

TEST_CASE("frozen weights are gathered all the same, only trained ones are reduced", "[perf][dp]") {
  Scenario scenario = scenario_without_latency();
  scenario.run.frozen_base = true;
  scenario.run.base_weight_bytes = 2;
  const ShardedPasses passes = sharded_passes(data_parallel_plan(scenario, config_of(8, ZeroLevel::parameters, 8), 0.01), {kElements, 0}, 0, 0);
  const double one = 0.875 * 2e9 / kNic;
  CHECK(passes.forward.at(TimePart::dp_comm) == Approx(one));
  CHECK(passes.backward.at(TimePart::dp_reduce) == Approx(0.01 * one));
}

TEST_CASE("an optimizer that broadcasts shard by shard pays per rank", "[perf][dp]") {
  FrameworkProfile profile = fused_trainer();
  profile.time.broadcast_per_rank_ms = 3.1;
  const Scenario scenario = scenario_of(llama(32, 4096, 11008, 32, 32), a100(), profile, 1024, 4096);
  const auto gather = [&](int op) {
    ParallelConfig config = config_of(1024, ZeroLevel::optimizer, op);
    config.tp = 1;
    return gather_seconds(step_exchange(data_parallel_plan(scenario, config, 1), {7e9, 0}, 0, 0));
  };
  // All 1024 ranks: 3.17 s; groups of 8: 25 ms (InternEvo, 7.2 s against 4.5 s measured steps).
  CHECK(gather(1024) == Approx(3.1744));
  CHECK(gather(8) == Approx(0.0248));
}

TEST_CASE("a flat gather does not share the node's NICs", "[perf][dp]") {
  FrameworkProfile profile = fused_trainer();
  const auto forward = [&](bool flat) {
    profile.time.flat_gather = flat;
    const Scenario scenario = scenario_without_latency(profile);
    ParallelConfig config = config_of(64, ZeroLevel::parameters, 64);
    config.tp = 1;
    return sharded_passes(data_parallel_plan(scenario, config, 1), {kElements, 0}, 0, 0).forward.at(TimePart::dp_comm);
  };
  // 8 ranks per node: the ring owns 8 NICs, the flat gather one.
  CHECK(forward(true) == Approx(63.0 / 64 * 2e9 / kNic));
  CHECK(forward(true) > 5 * forward(false));
}

TEST_CASE("the optimizer reads and writes the states of its shard", "[perf][dp]") {
  Scenario scenario = scenario_without_latency();
  const double rate = 1e12;
  // 32 bytes per sharded element, 6 per element on the rank.
  CHECK(optimizer_seconds(data_parallel_plan(scenario, config_of(8, ZeroLevel::none, 1), 1), {kElements, 0}, rate) == Approx(38e-3));
  CHECK(optimizer_seconds(data_parallel_plan(scenario, config_of(8, ZeroLevel::optimizer, 8), 1), {kElements, 0}, rate) == Approx(10e-3));
  CHECK(optimizer_seconds(data_parallel_plan(scenario, config_of(8, ZeroLevel::parameters, 8), 1), {kElements, 0}, rate) == Approx(4.75e-3));
  // States in host memory come in and go out every step: 12 bytes of an element each way over 10 GB/s, an eighth of them here.
  scenario.profile.time.optimizer_host_bytes = 12;
  scenario.cluster.device.host_link = HostLink{.h2d = {10e9}, .d2h = {10e9}};
  CHECK(optimizer_seconds(data_parallel_plan(scenario, config_of(8, ZeroLevel::optimizer, 8), 1), {kElements, 0}, rate) == Approx(10e-3 + 2 * 12e9 / 8 / 10e9));
  scenario.cluster.device.host_link.reset();  // unknown: nothing is invented
  CHECK(optimizer_seconds(data_parallel_plan(scenario, config_of(8, ZeroLevel::optimizer, 8), 1), {kElements, 0}, rate) == Approx(10e-3));
  scenario.run.optimizer = OptimizerKind::sgd;  // one state of 4 bytes fewer to read and to write
  CHECK(optimizer_seconds(data_parallel_plan(scenario, config_of(8, ZeroLevel::none, 1), 1), {kElements, 0}, rate) == Approx(30e-3));
}

}  // namespace nd::perf
