// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "nd/ops.hpp"
#include "nd/search.hpp"
#include "search/parallel.hpp"
#include "search/pricer.hpp"

namespace nd {

namespace {

std::vector<std::vector<std::int64_t>> layers_of(const layout::StageLayout& layout) {
  std::vector<std::vector<std::int64_t>> out;
  out.reserve(layout.stages.size());
  for (const auto& stage : layout.stages) {
    auto& chunks = out.emplace_back();
    for (const auto& chunk : stage) chunks.push_back(chunk.layers());
  }
  return out;
}

/// Model FLOPs per second and device over the step, and their share of the dense peak of the compute type.
/// tokens/s/device = B s / (step N); FLOP/s = that times the FLOPs of one token (docs/cost_model.md#mfu).
PricedCandidate price(const Scenario& scenario, const ParallelConfig& config, search::Pricer& pricer, Flops per_token) {
  PricedCandidate out;
  out.config = config;
  out.memory = pricer.memory(config);
  out.time = pricer.time(config);
  out.layers = layers_of(pricer.layout(config));
  if (config.recompute == Recompute::per_layer) out.plan = plan_layers(scenario, config);
  const auto& run = scenario.run;
  const double tokens = static_cast<double>(run.global_batch_size) * static_cast<double>(run.seq_length);
  out.tokens_per_second = tokens / (out.time.step.value * static_cast<double>(config.devices()));
  out.flops_per_second = per_token.value * out.tokens_per_second;
  const double peak = scenario.cluster.device.peak.at(static_cast<std::size_t>(run.compute_dtype)).value;
  if (peak > 0) out.mfu = out.flops_per_second / peak;
  return out;
}

Flops flops_per_token(const Scenario& scenario) {
  constexpr bool kCausal = true;
  return model_flops_per_token(scenario.model, scenario.run.seq_length, kCausal);
}

}  // namespace

PricedCandidate price_strategy(const Scenario& scenario, const ParallelConfig& config) {
  search::Pricer pricer(scenario);
  return price(scenario, config, pricer, flops_per_token(scenario));
}

std::vector<PricedCandidate> price_strategies(const Scenario& scenario, std::span<const ParallelConfig> configs, int jobs) {
  constexpr std::size_t kGrain = 16;
  const Flops per_token = flops_per_token(scenario);
  std::vector<PricedCandidate> out(configs.size());
  std::vector<std::unique_ptr<search::Pricer>> pricers(search::worker_count(jobs));
  search::parallel_for_index(configs.size(), {.grain = kGrain, .jobs = jobs, .stop = {}}, [&](const search::LoopChunk& chunk) {
    auto& pricer = pricers[chunk.worker];
    if (!pricer) pricer = std::make_unique<search::Pricer>(scenario);
    for (std::size_t i = chunk.begin; i < chunk.end; ++i) out[i] = price(scenario, configs[i], *pricer, per_token);
  });
  return out;
}

}  // namespace nd
