// SPDX-License-Identifier: Apache-2.0
// Published step times against the shipped figures of device and trainer.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "nd/data_store.hpp"
#include "nd/perf.hpp"
#include "nd/resolved.hpp"
#include "nd/scenario.hpp"

namespace {

struct PublishedStep {
  const char* model;
  int devices, tp, pp, vpp, micro_batch_size, global_batch;
  double full_seconds, selective_seconds;  ///< recompute full without / selective with sequence parallelism
};

// Korthikanti et al. 2022 (arXiv 2205.05198), table 5: seconds per iteration on A100 80 GB, s = 2048, V = 51200, dropout 0.1.
constexpr std::array kPublished{
    PublishedStep{"megatron-22b", 8, 8, 1, 1, 4, 4, 1.42, 1.10},
    PublishedStep{"gpt3-175b", 64, 8, 8, 3, 1, 64, 18.13, 13.75},
    PublishedStep{"megatron-530b", 280, 8, 35, 3, 1, 280, 49.05, 37.83},
    PublishedStep{"megatron-1t", 512, 8, 64, 1, 1, 512, 94.42, 71.49},
};

nd::Scenario scenario_of(const PublishedStep& row) {
  const nd::DataStore data(ND_TEST_DATA_DIR);
  const auto spec = data.model(row.model);
  REQUIRE(spec);
  const auto model = nd::resolve_model(*spec);
  REQUIRE(model);
  nd::Scenario scenario;
  scenario.model = *model;
  scenario.model.vocab_size = 51200;
  scenario.model.hidden_dropout = scenario.model.attention_dropout = 0.1;
  scenario.run.hidden_dropout = scenario.run.attention_dropout = 0.1;
  scenario.run.devices = row.devices;
  scenario.run.seq_length = 2048;
  const auto profile = data.framework("megatron-core", "lm-2021", {});
  REQUIRE(profile);
  scenario.profile = *profile;
  const auto device = data.device("a100-sxm-80");
  REQUIRE(device);
  scenario.cluster = {*device, row.devices};
  return scenario;
}

double predicted(const PublishedStep& row, bool selective) {
  nd::ParallelConfig config;
  config.tp = row.tp;
  config.pp = row.pp;
  config.vpp = row.vpp;
  config.dp = row.devices / (row.tp * row.pp);
  config.micro_batch_size = row.micro_batch_size;
  config.micro_batch_num = row.global_batch / (row.micro_batch_size * config.dp);
  config.schedule = row.vpp > 1 ? nd::Schedule::interleaved : nd::Schedule::one_f_one_b;
  config.sequence_parallel = selective;
  config.recompute = selective ? nd::Recompute::selective : nd::Recompute::full;
  return nd::estimate_time(scenario_of(row), config).step.value;
}

}  // namespace

// Worst 7.0 %, mean 5.0 %, all of them too slow (Calculon on the same rows: mean 3.65 %, worst 8.9 %). The rows are a few of those
// that the figures were fitted on, with the priors of data/measured/fit.yaml.
TEST_CASE("published Megatron-LM step times", "[data][published]") {
  double sum = 0;
  for (const PublishedStep& row : kPublished) {
    for (const bool selective : {false, true}) {
      const double measured = selective ? row.selective_seconds : row.full_seconds;
      const double error = predicted(row, selective) / measured - 1.0;
      CAPTURE(row.model, selective, measured, error);
      CHECK(std::abs(error) < 0.08);
      sum += std::abs(error);
    }
  }
  CHECK(sum / 8 < 0.055);
}
