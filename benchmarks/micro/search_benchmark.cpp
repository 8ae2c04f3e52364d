// SPDX-License-Identifier: Apache-2.0
// The inner steps of a search, one thread. Run: nd_micro_benchmarks
#include <benchmark/benchmark.h>

#include "search/pricer.hpp"
#include "space/enumerate.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

Scenario scenario_of(bool moe, std::int64_t devices) {
  return testing::make_scenario(moe ? testing::small_moe() : testing::llama_8b(),
                                {.devices = devices, .global_batch = 2 * devices, .seq_length = 4096});
}

std::vector<ParallelConfig> strategies(const Scenario& scenario, std::size_t most) {
  std::vector<ParallelConfig> out;
  const space::SpaceContext context(scenario);
  space::enumerate(context, {}, [&](const ParallelConfig& config) {
    out.push_back(config);
    return out.size() < most;
  });
  return out;
}

/// One candidate, the factors of its neighbours already known. range(0): MoE.
void price_memory(benchmark::State& state) {
  const Scenario scenario = scenario_of(state.range(0) != 0, 64);
  const auto configs = strategies(scenario, 20'000);
  search::Pricer pricer(scenario);
  for (const auto& config : configs) benchmark::DoNotOptimize(pricer.memory(config).peak_stage);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(pricer.memory(configs[next]).peak_stage);
    next = next + 1 == configs.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(state.iterations());
}

void price_time(benchmark::State& state) {
  const Scenario scenario = scenario_of(state.range(0) != 0, 64);
  const auto configs = strategies(scenario, 20'000);
  search::Pricer pricer(scenario);
  for (const auto& config : configs) benchmark::DoNotOptimize(pricer.time(config).step);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(pricer.time(configs[next]).step);
    next = next + 1 == configs.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(state.iterations());
}

/// All combinations on range(1) devices; items: combinations.
void enumerate_all(benchmark::State& state) {
  const Scenario scenario = scenario_of(state.range(0) != 0, state.range(1));
  const space::SpaceContext context(scenario);
  std::int64_t combinations = 0;
  for (auto _ : state) {
    const auto counts = space::enumerate(context, {}, [](const ParallelConfig& config) {
      benchmark::DoNotOptimize(config.dp);
      return true;
    });
    combinations += counts.enumerated;
  }
  state.SetItemsProcessed(combinations);
}

BENCHMARK(price_memory)->Arg(0)->Arg(1);
BENCHMARK(price_time)->Arg(0)->Arg(1);
BENCHMARK(enumerate_all)->Args({0, 1024})->Args({1, 1024})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nd
