// SPDX-License-Identifier: Apache-2.0
// Published uneven pipelines against the balancer with the shipped figures of device and trainer.
#include <catch2/catch.hpp>
#include <numeric>

#include "nd/balance.hpp"
#include "nd/data_store.hpp"
#include "nd/perf.hpp"
#include "nd/resolved.hpp"
#include "nd/scenario.hpp"

namespace {

using Layout = std::vector<std::vector<std::int64_t>>;

nd::Scenario scenario_of(const char* model, int devices, std::int64_t batch, std::int64_t seq_length) {
  const nd::DataStore data(ND_TEST_DATA_DIR);
  nd::Scenario scenario;
  const auto resolved = data.model(model).and_then([](const nd::ModelSpec& spec) { return nd::resolve_model(spec); });
  REQUIRE(resolved);
  scenario.model = *resolved;
  scenario.run.devices = devices;
  scenario.run.global_batch_size = batch;
  scenario.run.seq_length = seq_length;
  const auto profile = data.framework("megatron-core", "", {});
  REQUIRE(profile);
  scenario.profile = *profile;
  const auto device = data.device("h100-sxm-80");
  REQUIRE(device);
  scenario.cluster = {*device, devices};
  return scenario;
}

/// Replayed makespan of the passes with these layers.
double pipeline_with(nd::Scenario scenario, const nd::ParallelConfig& config, const Layout& layout) {
  scenario.run.layers_per_chunk = layout;
  return nd::replay_schedule(config.schedule, nd::pipeline_passes(scenario, config).input()).makespan.value;
}

void check_layout(const nd::BalancedStrategy& balanced, std::int64_t layers) {
  std::int64_t sum = 0;
  for (const auto& chunk : balanced.layers_per_chunk) sum += std::accumulate(chunk.begin(), chunk.end(), std::int64_t{0});
  CHECK(sum == layers);
  CHECK(balanced.pipeline <= balanced.even_pipeline);
  CHECK(balanced.bound <= balanced.pipeline);
}

}  // namespace

TEST_CASE("Llama 3.1 405B on 16 stages: the published layout, one layer less on the first and the last stage, is found or beaten") {
  // Grattafiori et al. 2024 (arXiv 2407.21783), section 3.3.2: 126 layers, the first and the last stage have one layer less each.
  const nd::Scenario scenario = scenario_of("llama-3.1-405b", 1024, 512, 8192);
  nd::ParallelConfig config;
  config.tp = 8;
  config.pp = 16;
  config.dp = 8;
  config.micro_batch_num = 64;
  config.sequence_parallel = true;
  config.zero = nd::ZeroLevel::optimizer;
  config.op = 8;
  config.recompute = nd::Recompute::full;
  const auto balanced = nd::balance_strategy(scenario, config);
  REQUIRE(balanced);
  check_layout(*balanced, 126);
  CHECK(balanced->proven);
  Layout published(1, std::vector<std::int64_t>(16, 8));
  published[0].front() = published[0].back() = 7;
  CHECK(balanced->pipeline.value <= pipeline_with(scenario, config, published) * (1 + 1e-12));
  // The even split puts its 14 spare layers on the middle stages as well: nothing to gain but nothing to lose.
  CHECK(pipeline_with(scenario, config, balanced->layers_per_chunk) == Approx(balanced->pipeline.value).epsilon(1e-9));
  // With the head's weight a last stage of eight layers would be the slowest of all.
  Layout heavy = published;
  heavy[0] = std::vector<std::int64_t>(16, 8);
  heavy[0][0] = heavy[0][1] = 7;
  CHECK(balanced->pipeline.value < pipeline_with(scenario, config, heavy));
}

TEST_CASE("DeepSeek-V3 on 16 stages: the published layout of its trainers is found or beaten") {
  // Megatron-Bridge, recipe of DeepSeek-V3, pp 16: 4 layers with the table, 14 times 4, then 1 with the MTP block and the loss.
  const nd::Scenario scenario = scenario_of("deepseek-v3", 1024, 1024, 4096);
  nd::ParallelConfig config;
  config.pp = 16;
  config.dp = 64;
  config.ep = 64;
  config.micro_batch_num = 16;
  config.zero = nd::ZeroLevel::optimizer;
  config.op = 64;
  config.recompute = nd::Recompute::full;
  const auto balanced = nd::balance_strategy(scenario, config);
  REQUIRE(balanced);
  check_layout(*balanced, 61);
  Layout published(1, std::vector<std::int64_t>(16, 4));
  published[0].back() = 1;
  CHECK(balanced->pipeline.value <= pipeline_with(scenario, config, published) * (1 + 1e-12));
  CHECK(balanced->pipeline < balanced->even_pipeline);
}

TEST_CASE("What cannot be laid out says so") {
  const nd::Scenario scenario = scenario_of("llama-3.1-8b", 8, 16, 4096);
  nd::ParallelConfig config;
  config.dp = 8;
  config.micro_batch_num = 2;
  CHECK_FALSE(nd::balance_strategy(scenario, config));  // no pipeline
  config.dp = 2;
  config.pp = 4;
  config.micro_batch_num = 8;
  config.recompute = nd::Recompute::per_layer;
  CHECK_FALSE(nd::balance_strategy(scenario, config));
  config.recompute = nd::Recompute::full;
  CHECK(nd::balance_strategy(scenario, config));
  config.schedule = nd::Schedule::dualpipe;
  CHECK_FALSE(nd::balance_strategy(scenario, config));
}

TEST_CASE("Layers as a balancer wants to know them add up to the model") {
  const nd::Scenario scenario = scenario_of("deepseek-v3", 256, 256, 4096);
  nd::ParallelConfig config;
  config.pp = 4;
  config.dp = 64;
  config.ep = 64;
  config.micro_batch_num = 4;
  config.zero = nd::ZeroLevel::optimizer;
  config.op = 64;
  const auto layers = nd::describe_layers(scenario, config);
  REQUIRE(layers.size() == 4);  // table, dense layers, layers of experts, head with the MTP block
  CHECK(layers[0].type == "HEAD");
  CHECK(layers[3].type == "TAIL");
  CHECK(layers[1].layers == 3);
  CHECK(layers[2].layers == 58);
  for (const auto& body : {layers[1], layers[2]}) {
    CHECK(body.forward.value > 0);
    CHECK(body.parameter_memory.value > 0);
    // Off keeps most and takes least, full the other way round.
    CHECK(body.activations[0] > body.activations[2]);
    CHECK(body.backward[2].value == Approx(body.backward[0].value + body.forward.value).epsilon(0.35));
    CHECK(body.backward[2] > body.backward[0]);
  }
  // 7168 hidden, 18432 wide and dense against 8 + 1 experts of 2048 a token: the same products a token, but 256 times the weights over 64.
  CHECK(layers[2].parameter_memory > layers[1].parameter_memory);
  // A stage of the pipeline is the sum of its layers.
  nd::Scenario stated = scenario;
  stated.run.layers_per_chunk = {{14, 17, 15, 15}};
  const auto passes = nd::pipeline_passes(stated, config);
  CHECK(passes.times[1].forward.value == Approx(17 * layers[2].forward.value).epsilon(1e-6));
  CHECK(passes.times[0].forward.value == Approx(layers[0].forward.value + 3 * layers[1].forward.value + 11 * layers[2].forward.value).epsilon(1e-6));
}
