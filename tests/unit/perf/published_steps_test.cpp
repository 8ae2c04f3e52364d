// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "unit/perf/fixtures.hpp"

namespace nd {
namespace {

using namespace perf_test;

struct PublishedStep {
  const char* name;
  GptShape model;
  int devices, tp, pp, vpp, micro_batch_size, global_batch;
  double full_seconds, selective_seconds;  ///< recompute full without / selective with sequence parallelism
};

// Korthikanti et al. 2022 (arXiv 2205.05198), table 5: seconds per iteration on A100 80 GB, s = 2048, V = 51200.
constexpr std::array kPublished{
    PublishedStep{"22B", {48, 6144, 64, 51200, 2048}, 8, 8, 1, 1, 4, 4, 1.42, 1.10},
    PublishedStep{"175B", {96, 12288, 96, 51200, 2048}, 64, 8, 8, 3, 1, 64, 18.13, 13.75},
    PublishedStep{"530B", {105, 20480, 128, 51200, 2048}, 280, 8, 35, 3, 1, 280, 49.05, 37.83},
    PublishedStep{"1T", {128, 25600, 160, 51200, 2048}, 512, 8, 64, 1, 1, 512, 94.42, 71.49},
};

double predicted(const PublishedStep& row, bool selective) {
  const Scenario scenario = scenario_of(gpt(row.model), a100(), megatron_2022(), row.devices, row.model.seq);
  ParallelConfig config;
  config.tp = row.tp;
  config.pp = row.pp;
  config.vpp = row.vpp;
  config.dp = row.devices / (row.tp * row.pp);
  config.micro_batch_size = row.micro_batch_size;
  config.micro_batch_num = row.global_batch / (row.micro_batch_size * config.dp);
  config.schedule = row.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
  config.sequence_parallel = selective;
  config.recompute = selective ? Recompute::selective : Recompute::full;
  return estimate_time(scenario, config).step.value;
}

}  // namespace

// Achieved with the device and framework constants of fixtures.cpp: +5.7, +4.9, +4.7, +5.2, +1.2, +0.0, +4.4, +4.9 %, mean 3.9 %
// (Calculon on the same rows: mean 3.65 %, worst 8.9 %). The constants were fitted on many other rows besides a few of this paper;
// nothing was set by looking at these eight.
TEST_CASE("published Megatron-LM step times", "[perf][published]") {
  double sum = 0;
  for (const PublishedStep& row : kPublished) {
    for (const bool selective : {false, true}) {
      const double measured = selective ? row.selective_seconds : row.full_seconds;
      const double ours = predicted(row, selective);
      CAPTURE(row.name, selective, measured, ours);
      CHECK(std::abs(ours / measured - 1.0) < 0.065);
      sum += std::abs(ours / measured - 1.0);
    }
  }
  CHECK(sum / 8 < 0.045);
}

}  // namespace nd
