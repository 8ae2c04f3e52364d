// SPDX-License-Identifier: Apache-2.0
#include "perf/layer_time.hpp"

#include <catch2/catch.hpp>

#include "perf/attention.hpp"
#include "perf/gemm.hpp"
#include "unit/perf/fixtures.hpp"

namespace nd::perf {
namespace {

using namespace perf_test;

/// Prices one layer of `scenario`'s first kind with all groups inside a node of two-tier machines.
LayerTime layer_of(const Scenario& scenario, const LayerShape& shape) {
  const DeviceRates rates = device_rates(scenario);
  const auto place = [](std::int64_t ranks) { return make_placement({.ranks = ranks, .stride = 1, .inside = {ranks, ranks}}); };
  const LayerContext context{.scenario = &scenario,
                             .rates = &rates,
                             .groups = {place(shape.tp), place(shape.cp), place(shape.ep), place(shape.etp)},
                             .ring_steps = shape.cp > 1 && shape.cp_algorithm == CpAlgorithm::ring ? shape.cp : 0};
  const LayerKind& kind = scenario.model.kinds.front();
  return layer_time(context, layer_ledger(scenario.model, kind, scenario.run, scenario.profile, shape),
                    {.experts = kind.ffn.kind == FfnKind::moe, .experts_per_token = kind.ffn.experts_per_token});
}

LayerShape shape_of(int tp, bool sequence_parallel = false) {
  LayerShape shape;
  shape.seq_length = 4096;
  shape.tp = tp;
  shape.sequence_parallel = sequence_parallel;
  return shape;
}

Scenario llama7b(FrameworkProfile profile = fused_trainer()) {
  profile.time.host_layer_ms = 0;
  profile.time.host_blend = 1e3;  // a pass takes the longer of device and host
  return scenario_of(llama(32, 4096, 11008, 32, 32), a100(), profile, 8, 4096);
}

constexpr double kHiddenBytes = 4096.0 * 4096 * 2;

}  // namespace

TEST_CASE("tensor parallelism moves two hidden states per layer and direction, whatever tp is", "[perf][layer]") {
  const Scenario scenario = llama7b();
  for (const int tp : {2, 4, 8}) {
    const LayerTime time = layer_of(scenario, shape_of(tp));
    const double one = collective_seconds(
        {.kind = CollectiveKind::all_reduce, .bytes = kHiddenBytes, .group = make_placement({.ranks = tp, .stride = 1, .inside = {tp, tp}})},
        scenario.cluster.device.levels);
    CHECK(time.forward.at(TimePart::tp_comm) == Approx(2 * one));
    CHECK(time.backward.at(TimePart::tp_comm) == Approx(2 * one));
  }
  CHECK(layer_of(scenario, shape_of(1)).forward.at(TimePart::tp_comm) == 0);
}

TEST_CASE("sequence parallelism moves the same bytes and gathers once more in the backward", "[perf][layer]") {
  Scenario scenario = llama7b();
  for (TopologyLevel& level : scenario.cluster.device.levels) level.latency = level.latency_per_rank = {};
  const LayerTime plain = layer_of(scenario, shape_of(8));
  const LayerTime sharded = layer_of(scenario, shape_of(8, true));
  CHECK(sharded.forward.at(TimePart::tp_comm) == Approx(plain.forward.at(TimePart::tp_comm)));
  // Re-gathering is half of what an all-reduce moves, half of it hidden: 1.25 times.
  CHECK(sharded.backward.at(TimePart::tp_comm) == Approx(1.25 * plain.backward.at(TimePart::tp_comm)));
  CHECK(sharded.backward.hidden_at(TimePart::tp_comm) == Approx(0.25 * plain.backward.at(TimePart::tp_comm)));
}

TEST_CASE("a trainer that pipelines its collectives hides a share of them", "[perf][layer]") {
  FrameworkProfile profile = fused_trainer();
  const double all = layer_of(llama7b(profile), shape_of(8)).forward.at(TimePart::tp_comm);
  profile.time.tp_exposed = 0.4;
  const LayerTime hidden = layer_of(llama7b(profile), shape_of(8));
  CHECK(hidden.forward.at(TimePart::tp_comm) == Approx(0.4 * all));
  CHECK(hidden.forward.hidden_at(TimePart::tp_comm) == Approx(0.6 * all));
}

TEST_CASE("the host sets the pace when a layer takes less than launching it", "[perf][layer]") {
  FrameworkProfile profile = fused_trainer();
  Scenario scenario = llama7b(profile);
  const LayerTime device = layer_of(scenario, shape_of(8));
  scenario.profile.time.host_layer_ms = 20;  // far above a millisecond of work
  const LayerTime bound = layer_of(scenario, shape_of(8));
  CHECK(bound.forward.total() == Approx(20e-3));
  CHECK(bound.backward.total() == Approx(1.9 * 20e-3));
  // The compute does not change; the wait is another part, after communication is counted.
  CHECK(bound.forward.at(TimePart::fw_compute) == device.forward.at(TimePart::fw_compute));
  CHECK(bound.forward.at(TimePart::other) == Approx(20e-3 - device.forward.total()));
  scenario.profile.time.host_layer_ms = 1e-3;
  CHECK(layer_of(scenario, shape_of(8)).forward.at(TimePart::other) == 0);
}

TEST_CASE("a pass near the balance of device and host takes more than either", "[perf][layer]") {
  Scenario scenario = llama7b();
  const double device = layer_of(scenario, shape_of(1)).forward.total();
  scenario.profile.time.host_blend = 2;
  scenario.profile.time.host_layer_ms = device * 1e3 * 0.75;  // 3 : 4, so 5 with the exponent 2
  CHECK(layer_of(scenario, shape_of(1)).forward.total() == Approx(1.25 * device));
  // Far from the balance the exponent hardly shows.
  scenario.profile.time.host_blend = 6;
  scenario.profile.time.host_layer_ms = device * 1e3 * 0.25;
  CHECK(layer_of(scenario, shape_of(1)).forward.total() == Approx(device).epsilon(1e-4));
}

TEST_CASE("a tensor-parallel group on both sockets launches slower, one on half a node does not", "[perf][layer]") {
  Scenario scenario = llama7b();
  scenario.profile.time.host_layer_ms = 100;
  const double narrow = layer_of(scenario, shape_of(4)).forward.total(), wide = layer_of(scenario, shape_of(8)).forward.total();
  CHECK(narrow == Approx(wide));
  scenario.profile.time.host_wide_tp_factor = 1.3;
  CHECK(layer_of(scenario, shape_of(4)).forward.total() == Approx(narrow));
  CHECK(layer_of(scenario, shape_of(8)).forward.total() == Approx(1.3 * wide));
}

TEST_CASE("MoE layers launch more, ring context parallelism per block", "[perf][layer]") {
  FrameworkProfile profile = fused_trainer();
  profile.time.host_layer_ms = 50;
  profile.time.host_blend = 1e3;
  Scenario scenario = scenario_of(moe(2), a100(), profile, 8, 4096);
  CHECK(layer_of(scenario, shape_of(1)).forward.total() == Approx(100e-3));
  Scenario dense = scenario_of(llama(2, 1024, 4096, 16, 16), a100(), profile, 8, 4096);
  dense.profile.time.host_ring_step_ms = 1.5;
  LayerShape ring = shape_of(1);
  ring.cp = 4;
  CHECK(layer_of(dense, ring).forward.total() == Approx(50e-3 + 4 * 1.5e-3));
}

TEST_CASE("recomputation repeats the forward with its collectives and its launches", "[perf][layer]") {
  Scenario scenario = llama7b();
  scenario.profile.time.host_layer_ms = 5;
  const LayerTime time = layer_of(scenario, shape_of(8));
  CHECK(time.full_recompute.at(TimePart::recompute) == time.forward.at(TimePart::fw_compute));
  CHECK(time.full_recompute.at(TimePart::fw_compute) == 0);
  CHECK(time.full_recompute.at(TimePart::tp_comm) == time.forward.at(TimePart::tp_comm));
  CHECK(time.full_recompute.total() == Approx(time.forward.total()));
}

TEST_CASE("selective recomputation repeats the attention core only", "[perf][layer]") {
  const Scenario scenario = llama7b();
  const LayerShape shape = shape_of(2);
  const LayerTime time = layer_of(scenario, shape);
  const LayerLedger ledger = layer_ledger(scenario.model, scenario.model.kinds.front(), scenario.run, scenario.profile, shape);
  CHECK(time.selective_recompute.total() == Approx(attention_forward_seconds(device_rates(scenario), ledger.attention.front())));
  CHECK(time.selective_recompute.at(TimePart::tp_comm) == 0);
  // Waiting for the host anyway, the recomputation costs nothing.
  Scenario slow_host = scenario;
  slow_host.profile.time.host_layer_ms = 100;
  CHECK(layer_of(slow_host, shape).selective_recompute.total() == Approx(0).margin(1e-12));
}

TEST_CASE("a frozen base has no weight gradients", "[perf][layer]") {
  Scenario scenario = llama7b();
  const LayerTime full = layer_of(scenario, shape_of(1));
  scenario.run.frozen_base = true;
  const LayerTime frozen = layer_of(scenario, shape_of(1));
  CHECK(frozen.forward.total() == full.forward.total());
  CHECK(frozen.weight_gradient == 0);
  CHECK(full.weight_gradient > 0.3 * full.backward.total());
  const LayerLedger ledger = layer_ledger(scenario.model, scenario.model.kinds.front(), scenario.run, scenario.profile, shape_of(1));
  double adapters = 0;  // 5 % of the input gradients
  for (const Gemm& gemm : ledger.gemms) adapters += 0.05 * gemm_input_gradient_seconds(device_rates(scenario), gemm);
  CHECK(frozen.backward.total() == Approx(full.backward.total() - full.weight_gradient + adapters));
  // A 4-bit base is widened each time it is used: 3 bytes per weight and pass.
  scenario.run.base_weight_bytes = 0.5;
  const double elements = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  CHECK(layer_of(scenario, shape_of(1)).forward.total() - frozen.forward.total() == Approx(3 * elements / (2.039e12 * 0.84)));
}

TEST_CASE("expert parallelism exchanges in both directions", "[perf][layer]") {
  Scenario scenario = scenario_of(moe(2), a100(), fused_trainer(), 8, 4096);
  scenario.profile.time.host_layer_ms = 0;
  LayerShape shape = shape_of(1);
  shape.ep = 8;
  const LayerTime time = layer_of(scenario, shape);
  // Dispatch and combine: 4096 tokens x 8 experts x 2048 x 2 bytes each, forward and again backward.
  const double one = collective_seconds({.kind = CollectiveKind::all_to_all,
                                         .bytes = 4096.0 * 8 * 2048 * 2,
                                         .group = make_placement({.ranks = 8, .stride = 1, .inside = {8, 8}})},
                                        scenario.cluster.device.levels);
  CHECK(time.forward.at(TimePart::ep_comm) == Approx(2 * one));
  CHECK(time.backward.at(TimePart::ep_comm) == Approx(2 * one));
  {
    // Behind 10 % of the compute of another micro-batch: what hides costs that compute its slow-down.
    const DeviceRates rates = device_rates(scenario);
    const auto place = [](std::int64_t ranks) { return make_placement({.ranks = ranks, .stride = 1, .inside = {ranks, ranks}}); };
    const LayerKind& kind = scenario.model.kinds.front();
    const LayerContext context{.scenario = &scenario, .rates = &rates, .groups = {place(1), place(1), place(shape.ep), place(1)}, .ep_overlap = 0.1};
    const LayerTime hidden = layer_time(context, layer_ledger(scenario.model, kind, scenario.run, scenario.profile, shape),
                                        {.experts = true, .experts_per_token = kind.ffn.experts_per_token});
    const double behind = 0.1 * hidden.forward.at(TimePart::fw_compute);
    REQUIRE(behind < 2 * one);
    CHECK(hidden.forward.at(TimePart::ep_comm) == Approx(2 * one - behind * (1 - scenario.cluster.device.compute.overlap_slowdown)));
    CHECK(hidden.forward.hidden_at(TimePart::ep_comm) == Approx(behind));
  }
  scenario.profile.time.ep_exposed = 0.5;
  CHECK(layer_of(scenario, shape).forward.at(TimePart::ep_comm) == Approx(one));
}

TEST_CASE("expert tensor parallelism divides the weights of an expert, not the experts", "[perf][layer]") {
  Scenario scenario = scenario_of(moe(2), a100(), fused_trainer(), 8, 4096);
  LayerShape plain = shape_of(2);
  plain.ep = 2;
  LayerShape split = plain;
  split.etp = 2;
  CHECK(layer_of(scenario, split).expert_elements == Approx(layer_of(scenario, plain).expert_elements / 2));
  // And pays for collectives of its own.
  CHECK(layer_of(scenario, split).forward.at(TimePart::tp_comm) > layer_of(scenario, plain).forward.at(TimePart::tp_comm));
}

TEST_CASE("head and table are priced", "[perf][layer]") {
  const Scenario scenario = llama7b();
  const DeviceRates rates = device_rates(scenario);
  const LayerContext context{.scenario = &scenario, .rates = &rates};
  const auto head = [&](int cp) {
    LayerShape shape = shape_of(1);
    shape.cp = cp;
    return layer_time(context, head_ledger(scenario.model, scenario.run, scenario.profile, shape, true), {.launched_per_layer = false});
  };
  // The product alone: 2 * 4096 * 32000 * 4096 FLOPs at 0.79 of 312 TFLOP/s is 4.36 ms; divided by cp like everything token-wise.
  CHECK(head(1).forward.total() > 2.0 * 4096 * 32000 * 4096 / (312e12 * 0.79));
  CHECK(head(2).forward.total() < 0.6 * head(1).forward.total());
  const LayerTime table = layer_time(context, embedding_ledger(scenario.model, scenario.run, scenario.profile, shape_of(1)), {.launched_per_layer = false});
  CHECK(table.forward.total() > 0);
  CHECK(table.backward.total() > 0);
}

}  // namespace nd::perf
