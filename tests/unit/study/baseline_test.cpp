// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "nd/study.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

Scenario moe(std::int64_t devices, std::int64_t batch) {
  return testing::make_scenario(testing::small_moe(), {.devices = devices, .global_batch = batch, .seq_length = 512});
}

}  // namespace

TEST_CASE("Data parallelism alone is the best of its own corner of the space", "[study]") {
  const Scenario scenario = moe(4, 8);
  const auto baseline = data_parallel_baseline(scenario, {});
  REQUIRE(baseline.priced);
  CHECK(baseline.fits());
  CHECK(baseline.problem.empty());
  const auto& config = baseline.priced->config;
  CHECK(config.dp == 4);
  for (const int degree : {config.tp, config.pp, config.cp, config.ep, config.etp, config.vpp}) CHECK(degree == 1);
  CHECK(config.micro_batch_size * config.micro_batch_num == 2);  // 8 sequences over 4 replicas
  // The corner lies inside the whole space: the search cannot lose to it, and finds nothing faster inside it.
  SearchOptions all;
  all.keep_all = true;
  const auto result = search_strategies(scenario, {}, all);
  CHECK(result.ranking.front().step.value <= baseline.priced->time.step.value);
  for (const auto& one : result.ranking) {
    if (one.config.dp != 4 || one.config.ep != 1 || one.config.vpp != 1 || one.config.etp != 1) continue;
    CHECK(one.step.value >= baseline.priced->time.step.value * (1 - 1e-9));  // the ranking ties what agrees to 2^-30
  }
}

TEST_CASE("A baseline that does not fit says what it lacks", "[study]") {
  SearchOptions options;
  options.memory_limit = Bytes{1e6};
  const auto baseline = data_parallel_baseline(moe(4, 8), options);
  REQUIRE(baseline.priced);
  CHECK_FALSE(baseline.fits());
  const auto& memory = baseline.priced->memory;
  CHECK(memory.budget.value == 1e6);
  CHECK(baseline.lacks.value == Approx(memory.peak().reserved.value - 1e6));
  CHECK(baseline.lacks.value > 0);
  CHECK_FALSE(baseline.largest_part.empty());
  CHECK(baseline.largest.value <= memory.peak().allocated.value);
}

TEST_CASE("More replicas than sequences cannot run, which is said", "[study]") {
  const auto baseline = data_parallel_baseline(moe(16, 8), {});
  CHECK_FALSE(baseline.priced);
  CHECK_FALSE(baseline.fits());
  CHECK(baseline.problem == "16 replicas need as many sequences, the batch has 8");
}

TEST_CASE("The stated strategy keeps its own lists of recomputed layers", "[study]") {
  Scenario scenario = moe(4, 8);
  scenario.run.strategy = {.dp = 4, .micro_batch_size = 1, .micro_batch_num = 2};
  const auto off = stated_baseline(scenario, {});
  scenario.run.full_recompute_layers = {6};  // of 6 layers on the one stage
  const auto full = stated_baseline(scenario, {});
  REQUIRE(off.priced);
  REQUIRE(full.priced);
  CHECK(full.priced->time.part(TimePart::recompute) > off.priced->time.part(TimePart::recompute));
  CHECK(full.priced->config == scenario.run.strategy);
  CHECK(stated_scenario(scenario, {}).run.full_recompute_layers == scenario.run.full_recompute_layers);
}

}  // namespace nd
