// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "nd/search_space.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

Scenario dense(std::int64_t devices = 8) {
  return testing::make_scenario(testing::small_dense(), {.devices = devices, .global_batch = 16, .seq_length = 64});
}
Scenario moe(std::int64_t devices = 8) {
  return testing::make_scenario(testing::small_moe(), {.devices = devices, .global_batch = 16, .seq_length = 64});
}

/// dp 8 on 8 devices, 2 micro-batches of 1: legal in both scenarios.
ParallelConfig plain() {
  ParallelConfig config;
  config.dp = 8;
  config.micro_batch_num = 2;
  return config;
}

}  // namespace

TEST_CASE("A plain strategy is legal") {
  CHECK_FALSE(first_violation(dense(), plain()));
  CHECK_FALSE(first_violation(moe(), plain()));
}

TEST_CASE("Each rule says what it is about") {
  auto config = plain();
  SECTION("devices") {
    config.dp = 4;
    CHECK(first_violation(dense(), config) == Rejection::devices_mismatch);
  }
  SECTION("heads: 8 do not divide by 3") {
    config.tp = 3;
    config.dp = 2;
    CHECK(first_violation(dense(6), config) == Rejection::heads_not_divisible);
  }
  SECTION("KV heads: 2 over 4 ranks needs replication") {
    config.tp = 4;
    config.dp = 2;
    config.micro_batch_num = 8;
    auto scenario = dense();
    CHECK_FALSE(first_violation(scenario, config));
    scenario.profile.can.kv_head_replication = false;
    CHECK(first_violation(scenario, config) == Rejection::kv_heads_not_divisible);
  }
  SECTION("width: 100 does not divide by 8") {
    config.tp = 8;
    config.dp = 1;
    auto scenario = dense();
    scenario.model.kinds.front().ffn.width = 100;
    CHECK(first_violation(scenario, config) == Rejection::width_not_divisible);
  }
  SECTION("layers: 6 over 4 stages") {
    config.pp = 4;
    config.dp = 2;
    config.micro_batch_num = 8;
    auto scenario = dense();
    CHECK(first_violation(scenario, config) == Rejection::layers_not_divisible);
    scenario.profile.can.uneven_layers = true;
    CHECK_FALSE(first_violation(scenario, config));
  }
  SECTION("layers: a stated layout for the very degrees makes an uneven split legal") {
    config.pp = 4;
    config.dp = 2;
    config.micro_batch_num = 8;
    auto scenario = dense();
    scenario.run.layers_per_chunk = {{1, 2, 2, 1}};
    CHECK_FALSE(first_violation(scenario, config));
    scenario.run.layers_per_chunk = {{3, 3}};
    CHECK(first_violation(scenario, config) == Rejection::layers_not_divisible);
  }
  SECTION("more stages than layers") {
    config.pp = 8;
    config.dp = 1;
    config.micro_batch_num = 16;
    auto scenario = dense();
    scenario.profile.can.uneven_layers = true;
    CHECK(first_violation(scenario, config) == Rejection::too_many_stages);
  }
  SECTION("ring: 2 cp divides the sequence, 36 / 8 does not") {
    config.cp = 4;
    config.dp = 2;
    config.micro_batch_num = 8;
    auto scenario = dense();
    CHECK_FALSE(first_violation(scenario, config));
    scenario.run.seq_length = 36;
    CHECK(first_violation(scenario, config) == Rejection::sequence_not_divisible);
  }
  SECTION("Ulysses: cp divides the heads") {
    config.cp = 8;
    config.dp = 1;
    config.micro_batch_num = 16;
    config.cp_algorithm = CpAlgorithm::ulysses;
    CHECK_FALSE(first_violation(dense(), config));
    config.cp = 4;
    config.tp = 4;
    CHECK(first_violation(dense(16), config) == Rejection::heads_not_divisible);
  }
  SECTION("experts") {
    config.ep = 8;
    CHECK(first_violation(dense(), config) == Rejection::no_experts);
    CHECK(first_violation(moe(), config) == Rejection::experts_not_divisible);
    config.ep = 3;
    CHECK(first_violation(moe(), config) == Rejection::expert_group_not_divisible);
    config.ep = 4;
    CHECK_FALSE(first_violation(moe(), config));
    config.etp = 4;  // 4 * 4 ranks out of 8
    CHECK(first_violation(moe(), config) == Rejection::expert_group_not_divisible);
  }
  SECTION("batch") {
    config.micro_batch_num = 3;
    CHECK(first_violation(dense(), config) == Rejection::batch_mismatch);
  }
  SECTION("MindSpore pipelines need as many micro-batches as stages") {
    config.pp = 2;
    config.dp = 4;
    config.micro_batch_num = 1;
    config.micro_batch_size = 4;
    auto scenario = dense();
    CHECK_FALSE(first_violation(scenario, config));
    scenario.profile.can.style = DataParallelStyle::mindspore;
    CHECK(first_violation(scenario, config) == Rejection::micro_batches_below_stages);
  }
  SECTION("chunks") {
    config.pp = 2;
    config.dp = 4;
    config.vpp = 3;
    config.micro_batch_num = 4;
    CHECK(first_violation(dense(), config) == Rejection::schedule_unsupported);
    config.schedule = Schedule::interleaved;
    CHECK_FALSE(first_violation(dense(), config));
    config.micro_batch_num = 1;
    config.micro_batch_size = 4;
    CHECK(first_violation(dense(), config) == Rejection::micro_batches_below_stages);
  }
  SECTION("schedules of the table: zb_v runs two chunks, DualPipe an even number of stages") {
    config.pp = 2;
    config.dp = 4;
    config.micro_batch_num = 4;
    auto scenario = dense();
    scenario.profile.can.schedules = "1f1b, interleaved, zb_v, zb_h1, dualpipe";
    config.schedule = Schedule::zb_v;
    CHECK(first_violation(scenario, config) == Rejection::schedule_unsupported);
    config.vpp = 2;
    CHECK(first_violation(scenario, config) == Rejection::layers_not_divisible);  // 6 layers over 2 stages of 2 chunks
    config.vpp = 1;
    config.schedule = Schedule::dualpipe;
    CHECK_FALSE(first_violation(scenario, config));
    config.micro_batch_num = 2;  // below 2 pp
    config.micro_batch_size = 2;
    CHECK(first_violation(scenario, config) == Rejection::micro_batches_below_stages);
    config.micro_batch_num = 4;
    config.micro_batch_size = 1;
    config.schedule = Schedule::zb_h1;
    CHECK_FALSE(first_violation(scenario, config));
    CHECK(first_violation(dense(), config) == Rejection::schedule_unsupported);  // not on the framework's list
  }
  SECTION("interleaving with micro-batches that are no multiple of pp, where the framework takes them") {
    auto scenario = dense();
    scenario.run.global_batch_size = 20;
    config = {.dp = 4, .pp = 2, .vpp = 3, .micro_batch_size = 1, .micro_batch_num = 5};
    config.schedule = Schedule::interleaved;
    CHECK(first_violation(scenario, config) == Rejection::micro_batches_below_stages);
    scenario.profile.can.interleaved_any_batches = true;
    CHECK_FALSE(first_violation(scenario, config));
    config.micro_batch_num = 1;
    config.micro_batch_size = 5;
    CHECK(first_violation(scenario, config) == Rejection::micro_batches_below_stages);
  }
  SECTION("sequence parallelism") {
    config.sequence_parallel = true;
    CHECK(first_violation(dense(), config) == Rejection::sequence_parallel_conflict);
    config.tp = 2;
    config.dp = 4;
    config.micro_batch_num = 4;
    CHECK_FALSE(first_violation(moe(), config));
    config.sequence_parallel = false;
    auto scenario = moe();
    scenario.profile.can.sequence_parallel_with_tp = SequenceParallelRule::with_experts;
    CHECK(first_violation(scenario, config) == Rejection::sequence_parallel_conflict);
    auto plain = dense();
    CHECK_FALSE(first_violation(plain, config));
    plain.profile.can.sequence_parallel_with_tp = SequenceParallelRule::always;
    CHECK(first_violation(plain, config) == Rejection::sequence_parallel_conflict);
    // The run itself has tp without sequence parallelism: its trainer can.
    plain.run.strategy.tp = 4;
    plain.run.strategy.sequence_parallel = false;
    CHECK_FALSE(first_violation(plain, config));
  }
  SECTION("sharding") {
    config.zero = ZeroLevel::optimizer;
    CHECK(first_violation(dense(), config) == Rejection::sharding_conflict);
    config.op = 8;
    CHECK_FALSE(first_violation(dense(), config));
    config.op = 3;
    CHECK(first_violation(dense(), config) == Rejection::sharding_conflict);
  }
  SECTION("ZeRO-3 beside a pipeline") {
    config.zero = ZeroLevel::parameters;
    config.pp = 2;
    config.dp = 4;
    config.op = 4;
    config.micro_batch_num = 4;
    auto scenario = dense();
    CHECK(first_violation(scenario, config) == Rejection::unsupported_by_framework);
    scenario.profile.can.style = DataParallelStyle::fsdp2;
    CHECK_FALSE(first_violation(scenario, config));
  }
}

}  // namespace nd
