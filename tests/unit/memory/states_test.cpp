// SPDX-License-Identifier: Apache-2.0
// Static bytes: weights, gradients and optimizer states with shardings of their own. Sources: Megatron-LM
// megatron/training/theoretical_memory_usage.py (18, 6 + 12/dp bytes per parameter); Rajbhandari et al. 2020 (ZeRO).
#include <catch2/catch.hpp>

#include "memory/memory_model.hpp"
#include "unit/memory/scenarios.hpp"

namespace nd::test {
namespace {

constexpr Decoder kSmall{.hidden = 1024, .layers = 8, .heads = 16, .kv_heads = 4, .ffn = 3072, .vocab = 32000};

double elements_of(const Decoder& d) {
  return static_cast<double>(d.layers) * layer_elements(d) + 2.0 * static_cast<double>(d.vocab * d.hidden) + static_cast<double>(d.hidden);
}

StageMemory first_stage(const Scenario& scenario, const ParallelConfig& config) { return estimate_memory(scenario, config).stages.front(); }

double bytes_per_parameter(const Scenario& scenario, const ParallelConfig& config, double elements) {
  return first_stage(scenario, config).static_bytes().value / elements;
}

}  // namespace

TEST_CASE("Megatron with bf16: 18 bytes without and 6 + 12/D with the distributed optimizer") {
  const Scenario scenario = bare_scenario(decoder(kSmall), 512);
  const double n = elements_of(kSmall);
  CHECK(bytes_per_parameter(scenario, {.dp = 8}, n) == Approx(18.0).epsilon(1e-12));
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 8, .zero = ZeroLevel::optimizer}, n) == Approx(6 + 12 / 8.0).epsilon(1e-12));
  CHECK(bytes_per_parameter(scenario, {.dp = 4, .cp = 2, .op = 8, .zero = ZeroLevel::optimizer}, n) == Approx(6 + 12 / 8.0).epsilon(1e-12));
  // Two optimizer instances: states over 4 of 8 ranks.
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 4, .zero = ZeroLevel::optimizer}, n) == Approx(6 + 12 / 4.0).epsilon(1e-12));
}

TEST_CASE("ZeRO-2 shards gradients too, ZeRO-3 everything, HSDP over op of dp x cp ranks") {
  const Scenario scenario = bare_scenario(decoder(kSmall), 512);
  const double n = elements_of(kSmall);
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 8, .zero = ZeroLevel::gradients}, n) == Approx(2 + 16 / 8.0).epsilon(1e-12));
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 8, .zero = ZeroLevel::parameters}, n) == Approx(18 / 8.0).epsilon(1e-12));
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 2, .zero = ZeroLevel::parameters}, n) == Approx(18 / 2.0).epsilon(1e-12));
}

TEST_CASE("MindSpore's optimizer parallelism shards weights and gradients with the states") {
  Scenario scenario = bare_scenario(decoder(kSmall), 512);
  scenario.profile.memory.optimizer_shards_parameters = true;
  const double n = elements_of(kSmall);
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 8, .zero = ZeroLevel::optimizer}, n) == Approx(18 / 8.0).epsilon(1e-12));
  CHECK(bytes_per_parameter(scenario, {.dp = 8}, n) == Approx(18.0).epsilon(1e-12));
}

TEST_CASE("Without optimizer sharding nothing is divided by context parallelism") {
  const Scenario scenario = bare_scenario(decoder(kSmall), 512);
  CHECK(bytes_per_parameter(scenario, {.cp = 4}, elements_of(kSmall)) == Approx(18.0).epsilon(1e-12));
}

TEST_CASE("Gradients cost bytes without a pipeline as well") {
  const Scenario scenario = bare_scenario(decoder(kSmall), 512);
  CHECK(first_stage(scenario, {.dp = 2}).gradients.value == Approx(4 * elements_of(kSmall)).epsilon(1e-12));
}

TEST_CASE("Norms are replicated over tp, the rest is divided") {
  const Scenario scenario = bare_scenario(decoder(kSmall), 512);
  const double norms = 8.0 * 2 * 1024 + 1024;
  const double rest = elements_of(kSmall) - norms;
  CHECK(first_stage(scenario, {.tp = 4}).parameters.value == Approx(2 * (rest / 4 + norms)).epsilon(1e-12));
}

TEST_CASE("Frameworks that shard over dp and tp divide replicated parameters by both") {
  Scenario scenario = bare_scenario(decoder(kSmall), 512);
  scenario.profile.memory.parameters_sharded_over_tp_and_dp = true;
  const ParallelConfig config{.dp = 2, .tp = 4, .op = 2, .zero = ZeroLevel::parameters};
  CHECK(first_stage(scenario, config).static_bytes().value == Approx(18 * elements_of(kSmall) / 8).epsilon(1e-12));
}

TEST_CASE("fp16 in Megatron: gradients of 2 bytes and an fp32 copy of the shard during the step") {
  Scenario scenario = bare_scenario(decoder(kSmall), 16);
  scenario.run.compute_dtype = Dtype::fp16;
  const double n = elements_of(kSmall);
  const auto memory = estimate_memory(scenario, {.dp = 4, .op = 4, .zero = ZeroLevel::optimizer});
  CHECK(memory.peak().instant == Instant::optimizer_step);
  CHECK(memory.peak().gradients.value == Approx(2 * n).epsilon(1e-12));
  CHECK(memory.peak().temporary.value == Approx(4 * n / 4).epsilon(1e-12));
  CHECK(memory.peak().allocated.value == Approx(n * (2 + 2 + 12 / 4.0 + 4 / 4.0)).epsilon(1e-12));
}

TEST_CASE("Megatron-DeepSpeed ZeRO-1 in fp16 keeps an fp32 gradient partition: 2 + 2 + 16/D") {
  Scenario scenario = bare_scenario(decoder(kSmall), 512);
  scenario.run.compute_dtype = Dtype::fp16;
  scenario.profile.memory.gradient_partition_bytes = 4;
  scenario.profile.memory.fp16_step_bytes = 0;
  CHECK(bytes_per_parameter(scenario, {.dp = 8, .op = 8, .zero = ZeroLevel::optimizer}, elements_of(kSmall)) == Approx(4 + 16 / 8.0).epsilon(1e-12));
}

TEST_CASE("fp32 training needs no main copy: 4 + 4 + 8") {
  Scenario scenario = bare_scenario(decoder(kSmall), 512);
  scenario.run.compute_dtype = Dtype::fp32;
  CHECK(bytes_per_parameter(scenario, {}, elements_of(kSmall)) == Approx(16.0).epsilon(1e-12));
}

TEST_CASE("Bytes of the moments by optimizer") {
  CHECK(memory::moment_bytes(OptimizerKind::adamw, 8, true) == 8);
  CHECK(memory::moment_bytes(OptimizerKind::adamw_bf16_states, 8, true) == 4);
  CHECK(memory::moment_bytes(OptimizerKind::adamw_8bit, 8, true) == 2);  // with the main copy 12 -> 6
  CHECK(memory::moment_bytes(OptimizerKind::sgd, 8, true) == 4);
  CHECK(memory::moment_bytes(OptimizerKind::muon, 8, true) == 4);
  CHECK(memory::moment_bytes(OptimizerKind::muon, 8, false) == 8);
  CHECK(memory::moment_bytes(OptimizerKind::adamw_8bit, 0, true) == 0);  // states swapped to the host stay there
}

TEST_CASE("Muon keeps one state for the layers' matrices, AdamW two for tables and norms") {
  Scenario scenario = bare_scenario(decoder(kSmall), 512);
  scenario.run.optimizer = OptimizerKind::muon;
  const double vectors = 8.0 * 2 * 1024 + 1024 + 2.0 * 32000 * 1024;
  const double matrices = elements_of(kSmall) - vectors;
  CHECK(first_stage(scenario, {}).optimizer_states.value == Approx(matrices * (4 + 4) + vectors * (4 + 8)).epsilon(1e-12));
}

TEST_CASE("A frozen base has weights only; adapters cost 16 bytes per trained element") {
  Scenario scenario = bare_scenario(decoder(kSmall), 512);
  scenario.run.frozen_base = true;
  scenario.run.trained_parameters = 1e6;
  const double n = elements_of(kSmall);
  SECTION("LoRA on 16-bit weights") {
    const StageMemory stage = first_stage(scenario, {});
    CHECK(stage.static_bytes().value == Approx(2 * n + 16e6).epsilon(1e-12));
    CHECK(stage.gradients.value == Approx(4e6).epsilon(1e-12));
  }
  SECTION("QLoRA: 0.516 bytes per layer matrix, tables and norms as they were") {
    scenario.run.base_weight_bytes = 0.516;
    const double vectors = 8.0 * 2 * 1024 + 1024 + 2.0 * 32000 * 1024;
    CHECK(first_stage(scenario, {}).parameters.value == Approx(0.516 * (n - vectors) + 2 * vectors + 4e6).epsilon(1e-12));
  }
  SECTION("sharded with everything else under FSDP") {
    const ParallelConfig config{.dp = 4, .op = 4, .zero = ZeroLevel::parameters};
    CHECK(first_stage(scenario, config).static_bytes().value == Approx((2 * n + 16e6) / 4).epsilon(1e-12));
  }
  SECTION("each stage holds the adapters of its layers") {
    const auto two = estimate_memory(scenario, {.pp = 2, .micro_batch_num = 2});
    CHECK(two.stages[0].gradients.value == Approx(2e6).epsilon(1e-12));
    CHECK(two.stages[1].gradients.value == Approx(2e6).epsilon(1e-12));
  }
}

TEST_CASE("Experts: over ep and etp, their states over devices/(pp ep etp)") {
  const Decoder d{.hidden = 512, .layers = 4, .heads = 8, .kv_heads = 8, .ffn = 1024, .vocab = 1000};
  const Scenario scenario = bare_scenario(mixture(d, {.count = 16, .per_token = 2, .width = 256}), 64);
  const double experts = 4.0 * 16 * 3 * 512 * 256, router = 4.0 * 512 * 16;
  const double dense = 4 * (layer_elements(d) - 3.0 * 512 * 1024) + 2.0 * 1000 * 512 + 512 + router;

  // dp 8, ep 4: weights and gradients of a quarter of the experts; states shared by 8 / 4 = 2 ranks.
  const ParallelConfig spread{.dp = 8, .ep = 4, .op = 8, .zero = ZeroLevel::optimizer};
  CHECK(first_stage(scenario, spread).static_bytes().value ==
        Approx(dense * (6 + 12 / 8.0) + experts / 4 * (6 + 12 / 2.0)).epsilon(1e-12));
  // dp 4 x tp 2, etp 2, ep 2: D_e = 8 / 4 = 2.
  const ParallelConfig split{.dp = 4, .tp = 2, .ep = 2, .etp = 2, .op = 4, .zero = ZeroLevel::optimizer};
  const double replicated = router + 4.0 * 2 * 512 + 512;
  CHECK(first_stage(scenario, split).static_bytes().value ==
        Approx(((dense - replicated) / 2 + replicated) * (6 + 12 / 4.0) + experts / 4 * (6 + 12 / 2.0)).epsilon(1e-12));
  // Two optimizer instances halve the sharing of the experts as well, to one rank.
  const ParallelConfig instances{.dp = 8, .ep = 4, .op = 4, .zero = ZeroLevel::optimizer};
  CHECK(first_stage(scenario, instances).static_bytes().value == Approx(dense * (6 + 12 / 4.0) + experts / 4 * 18).epsilon(1e-12));
}

TEST_CASE("A tied table is held once on one stage and twice on a pipeline") {
  Decoder d = kSmall;
  d.tied = true;
  const Scenario scenario = bare_scenario(decoder(d), 512);
  const double table = 32000.0 * 1024, layers = 8 * layer_elements(d);
  CHECK(first_stage(scenario, {}).parameters.value == Approx(2 * (layers + table + 1024)).epsilon(1e-12));
  const auto two = estimate_memory(scenario, {.pp = 2, .micro_batch_num = 2});
  CHECK(two.stages[0].parameters.value == Approx(2 * (layers / 2 + table)).epsilon(1e-12));
  CHECK(two.stages[1].parameters.value == Approx(2 * (layers / 2 + table + 1024)).epsilon(1e-12));
}

TEST_CASE("The table is padded as the framework does, per tp rank") {
  Scenario scenario = bare_scenario(decoder({.hidden = 1024, .layers = 2, .vocab = 50257}), 64);
  scenario.profile.can.vocab_padding = 128;
  // 50,257 -> 50,304 (393 x 128) with one rank, 50,688 (99 x 512) with four.
  const auto lines_of_table = [&](int tp) {
    double bytes = 0;
    for (const MemoryLine& line : memory_ledger(scenario, {.tp = tp}, 0))
      if (line.part == "parameters" && line.op == "embedding") bytes += line.bytes.value;
    return bytes;
  };
  CHECK(lines_of_table(1) == 2.0 * 50304 * 1024);
  CHECK(lines_of_table(4) == 2.0 * 50688 * 1024 / 4);
}

TEST_CASE("MTP shares the tables where they are and copies the embedding to a last stage of its own") {
  ResolvedModel model = decoder(kSmall);
  model.mtp_depth = 2;
  const double table = 32000.0 * 1024, layer = layer_elements(kSmall);
  const double block = layer + 2.0 * 1024 * 1024 + 3.0 * 1024;
  const Scenario scenario = bare_scenario(model, 512);
  CHECK(first_stage(scenario, {}).parameters.value == Approx(2 * (8 * layer + 2 * block + 2 * table + 1024)).epsilon(1e-12));
  const auto two = estimate_memory(scenario, {.pp = 2, .micro_batch_num = 2});
  CHECK(two.stages[0].parameters.value == Approx(2 * (4 * layer + table)).epsilon(1e-12));
  CHECK(two.stages[1].parameters.value == Approx(2 * (4 * layer + 2 * block + 2 * table + 1024)).epsilon(1e-12));

  model.tied_embeddings = true;  // the head's copy of the table serves the MTP blocks too
  const auto tied = estimate_memory(bare_scenario(model, 512), {.pp = 2, .micro_batch_num = 2});
  CHECK(tied.stages[1].parameters.value == Approx(2 * (4 * layer + 2 * block + table + 1024)).epsilon(1e-12));
}

TEST_CASE("Uneven pipelines are exact: the heaviest of 1, 2, 2, 3 layers has three") {
  Scenario scenario = bare_scenario(decoder(kSmall), 16);
  scenario.run.layers_per_chunk = {{1, 2, 2, 3}};
  const auto memory = estimate_memory(scenario, {.pp = 4, .micro_batch_num = 4});
  const double layer = layer_elements(kSmall), table = 32000.0 * 1024;
  CHECK(memory.peak_stage == 3);
  CHECK(memory.stages[0].static_bytes().value == Approx(18 * (layer + table)).epsilon(1e-12));
  CHECK(memory.stages[2].static_bytes().value == Approx(18 * 2 * layer).epsilon(1e-12));
  CHECK(memory.stages[3].static_bytes().value == Approx(18 * (3 * layer + table + 1024)).epsilon(1e-12));
}

}  // namespace nd::test
