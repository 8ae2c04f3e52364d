// SPDX-License-Identifier: Apache-2.0
#include "perf/time_model.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "support/allocations.hpp"
#include "unit/perf/fixtures.hpp"

namespace nd {
namespace {

using namespace perf_test;

std::vector<ParallelConfig> candidates() {
  std::vector<ParallelConfig> all;
  for (const int tp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4}) {
      for (const int ep : {1, 8}) {
        for (const int mbs : {1, 2}) {
          for (const Recompute recompute : {Recompute::off, Recompute::full}) {
            ParallelConfig config;
            config.tp = tp;
            config.pp = pp;
            config.dp = 64 / (tp * pp);
            config.ep = ep;
            config.micro_batch_size = mbs;
            config.micro_batch_num = 32;
            config.zero = ZeroLevel::optimizer;
            config.op = config.dp;
            config.recompute = recompute;
            all.push_back(config);
          }
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a model that has seen much prices exactly as a fresh one", "[perf][time_model]") {
  const Scenario scenario = scenario_of(moe(16), h100(), fused_trainer(), 64, 4096);
  perf::TimeModel model(scenario);
  TimeBreakdown shared;
  for (int pass = 0; pass < 2; ++pass) {
    for (const ParallelConfig& config : candidates()) {
      const Seconds bound = model.at_least(config);
      model.estimate(config, shared);
      const TimeBreakdown fresh = estimate_time(scenario, config);
      CHECK(bound <= fresh.step);
      CHECK(bound.value >= 0.7 * fresh.step.value);
      CHECK(shared.step == fresh.step);
      CHECK(shared.exposed == fresh.exposed);
      CHECK(shared.hidden == fresh.hidden);
    }
  }
}

TEST_CASE("pricing allocates nothing once shapes, degrees and layouts are known", "[perf][time_model]") {
  const Scenario scenario = scenario_of(moe(16), h100(), fused_trainer(), 64, 4096);
  const std::vector<ParallelConfig> all = candidates();
  perf::TimeModel model(scenario);
  TimeBreakdown time;
  for (const ParallelConfig& config : all) {
    (void)model.at_least(config);
    model.estimate(config, time);
  }
  const std::int64_t before = test::allocations();
  for (const ParallelConfig& config : all) {
    (void)model.at_least(config);
    model.estimate(config, time);
  }
  CHECK(test::allocations() == before);
}

}  // namespace nd
