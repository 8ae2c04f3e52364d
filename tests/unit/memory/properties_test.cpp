// SPDX-License-Identifier: Apache-2.0
// What holds for every strategy.
#include <catch2/catch.hpp>
#include <random>

#include "memory/memory_model.hpp"
#include "support/allocations.hpp"
#include "unit/memory/scenarios.hpp"

namespace nd::test {
namespace {

/// A profile with every effect switched on.
Scenario rich_scenario(ResolvedModel model, std::int64_t seq_length) {
  Scenario scenario = bare_scenario(std::move(model), seq_length);
  MemoryProfile& memory = scenario.profile.memory;
  memory = MemoryProfile{};
  memory.cached_weight_gradients = true;
  memory.grouped_gemm_workspace_gib = 0.125;
  memory.optimizer_temporary = OptimizerTemporary::largest_tensor;
  memory.bucket_bytes = 1e9;
  memory.accumulates_whole_gradients = true;
  memory.softmax_statistics_bytes = 64;
  memory.mask_creation_bytes = 6;
  return scenario;
}

int pick(std::mt19937& random, std::initializer_list<int> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

ParallelConfig random_config(std::mt19937& random, bool experts) {
  ParallelConfig c;
  c.dp = pick(random, {1, 2, 4, 8});
  c.tp = pick(random, {1, 2, 4});
  c.pp = pick(random, {1, 2, 4});
  c.cp = pick(random, {1, 2});
  if (experts) {
    c.ep = pick(random, {1, 2, c.dp * c.cp});
    if (c.ep > c.dp * c.cp) c.ep = 1;
    c.etp = pick(random, {1, c.tp});
  }
  c.vpp = c.pp > 1 ? pick(random, {1, 2}) : 1;
  c.schedule = c.vpp > 1 ? Schedule::interleaved : pick(random, {0, 1}) == 0 ? Schedule::gpipe : Schedule::one_f_one_b;
  c.op = pick(random, {1, c.dp * c.cp});
  c.micro_batch_size = pick(random, {1, 2, 4});
  c.micro_batch_num = c.pp * pick(random, {1, 2, 4});
  c.sequence_parallel = c.tp > 1 && pick(random, {0, 1}) == 1;
  c.zero = c.op == 1 ? ZeroLevel::none : static_cast<ZeroLevel>(pick(random, {1, 2, 3}));
  c.recompute = static_cast<Recompute>(pick(random, {0, 1, 2}));
  c.cp_algorithm = static_cast<CpAlgorithm>(pick(random, {0, 1, 2}));
  return c;
}

double peak(const Scenario& scenario, const ParallelConfig& config) { return estimate_memory(scenario, config).peak().reserved.value; }

std::vector<Scenario> scenarios() {
  ResolvedModel mtp = decoder({.layers = 16});
  mtp.mtp_depth = 1;
  Scenario frozen = rich_scenario(decoder({.layers = 16}), 1024);
  frozen.run.frozen_base = true;
  frozen.run.trained_parameters = 5e6;
  frozen.run.base_weight_bytes = 0.516;
  frozen.profile.memory.boundary_gradients_kept = true;
  frozen.profile.memory.gradients_freed_between_steps = true;
  frozen.profile.memory.recompute_input_bytes = 4;
  Scenario unfused = rich_scenario(decoder({.layers = 16, .gated = false, .tied = true}), 512);
  unfused.profile.memory.flash_attention = false;
  unfused.run.compute_dtype = Dtype::fp16;
  unfused.run.hidden_dropout = unfused.run.attention_dropout = 0.1;
  return {rich_scenario(decoder({.layers = 16}), 2048), rich_scenario(mtp, 2048), frozen, unfused,
          rich_scenario(mixture({.layers = 16}, {.count = 16, .per_token = 2, .width = 1024, .shared = 1, .shared_width = 1024, .dense_layers = 2}), 1024),
          rich_scenario(deepseek(16, 1), 512)};
}

}  // namespace

TEST_CASE("Ledger lines sum to the allocated bytes, parts too, for random strategies") {
  std::mt19937 random(20261130);
  for (const Scenario& scenario : scenarios()) {
    for (int i = 0; i < 60; ++i) {
      const ParallelConfig config = random_config(random, scenario.model.has_experts());
      const auto memory = estimate_memory(scenario, config);
      CAPTURE(to_text(config));
      REQUIRE(memory.stages.size() == static_cast<std::size_t>(config.pp));
      for (const StageMemory& stage : memory.stages) {
        CHECK(stage.allocated.value == Approx((stage.static_bytes() + stage.dynamic_bytes()).value).epsilon(1e-12));
        double sum = 0;
        for (const MemoryLine& line : memory_ledger(scenario, config, stage.stage)) {
          CHECK(line.bytes.value > 0);
          sum += line.bytes.value;
        }
        CAPTURE(stage.stage, to_text(stage.instant));
        CHECK(sum == Approx(stage.allocated.value).epsilon(1e-9));
        CHECK(stage.reserved > stage.allocated);
        CHECK_FALSE(stage.reserved > memory.peak().reserved);
      }
    }
  }
}

TEST_CASE("More sharding never costs memory, a larger micro-batch never saves it") {
  std::mt19937 random(7);
  for (const Scenario& scenario : scenarios()) {
    for (int i = 0; i < 60; ++i) {
      ParallelConfig config = random_config(random, scenario.model.has_experts());
      CAPTURE(to_text(config));
      ParallelConfig larger = config;
      larger.micro_batch_size *= 2;
      CHECK(peak(scenario, larger) >= peak(scenario, config) * (1 - 1e-12));

      // Optimizer, then gradients too, over the whole group.
      config.op = config.dp * config.cp;
      double before = 0;
      for (const ZeroLevel level : {ZeroLevel::gradients, ZeroLevel::optimizer, ZeroLevel::none}) {
        ParallelConfig c = config;
        c.zero = level;
        if (level == ZeroLevel::gradients && scenario.profile.memory.accumulates_whole_gradients && c.micro_batch_num > 1) continue;
        CHECK(peak(scenario, c) >= before * (1 - 1e-12));
        before = peak(scenario, c);
      }
      // Fewer ranks to shard over.
      for (const ZeroLevel level : {ZeroLevel::optimizer, ZeroLevel::parameters}) {
        if (config.op < 4) continue;
        ParallelConfig wide = config, narrow = config;
        wide.zero = narrow.zero = level;
        narrow.op = config.op / 2;
        CHECK(peak(scenario, wide) <= peak(scenario, narrow) * (1 + 1e-12));
      }
    }
  }
}

TEST_CASE("Tensor parallelism never costs memory with the other degrees fixed") {
  std::mt19937 random(11);
  for (const Scenario& scenario : scenarios()) {
    for (int i = 0; i < 40; ++i) {
      ParallelConfig one = random_config(random, scenario.model.has_experts());
      one.tp = one.etp = 1;
      one.sequence_parallel = false;
      ParallelConfig two = one;
      two.tp = 2;
      two.sequence_parallel = true;
      two.etp = scenario.model.has_experts() ? 2 : 1;
      CAPTURE(to_text(one));
      // Allocated: reserved also holds the buffers of one more communicator.
      double most_one = 0, most_two = 0;
      for (const auto& stage : estimate_memory(scenario, one).stages) most_one = std::max(most_one, stage.allocated.value);
      for (const auto& stage : estimate_memory(scenario, two).stages) most_two = std::max(most_two, stage.allocated.value);
      CHECK(most_two <= most_one * (1 + 1e-12));
    }
  }
}

TEST_CASE("A model that is reused gives the same figures and allocates nothing after warm-up") {
  std::mt19937 random(3);
  for (const Scenario& scenario : scenarios()) {
    std::vector<ParallelConfig> configs;
    for (int i = 0; i < 40; ++i) configs.push_back(random_config(random, scenario.model.has_experts()));
    memory::MemoryModel model(scenario);
    MemoryBreakdown out;
    std::vector<double> peaks;
    for (const auto& config : configs) {
      model.estimate(config, out);
      peaks.push_back(out.peak().reserved.value);
    }
    // Highest pp last, so that the storage has its final size.
    std::ranges::sort(configs, {}, [](const ParallelConfig& c) { return -c.pp; });
    for (const auto& config : configs) model.estimate(config, out);
    const std::int64_t before = allocations();
    for (const auto& config : configs) model.estimate(config, out);
    CHECK(allocations() == before);
    std::vector<double> again;
    for (const auto& config : configs) again.push_back(peak(scenario, config));
    std::ranges::sort(again);
    std::ranges::sort(peaks);
    CHECK(again == peaks);
  }
}

}  // namespace nd::test
