// SPDX-License-Identifier: Apache-2.0
// The balancer with the prices of the models: what a stage takes and holds with other layers than the layout gives it.
#include <algorithm>
#include <map>

#include "layout/layout.hpp"
#include "memory/memory_model.hpp"
#include "nd/balance.hpp"
#include "nd/perf.hpp"
#include "perf/time_model.hpp"
#include "plan/balance.hpp"

namespace nd {

namespace {

/// The layout is what is looked for; a mode per layer would be chosen anew for every layout.
Scenario without_layout(Scenario scenario) {
  scenario.run.layers_per_chunk.clear();
  scenario.run.full_recompute_layers.clear();
  scenario.run.selective_recompute_layers.clear();
  scenario.run.layer_split = LayerSplit::even;
  return scenario;
}

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// Prices chunks of any content at any place of one strategy's pipeline. Keeps what it has priced.
class ChunkPricer {
 public:
  ChunkPricer(const Scenario& scenario, const ParallelConfig& config)
      : scenario_(without_layout(scenario)), config_(config), memory_(scenario_), time_(scenario_) {
    layout_ = layout::scheduled_layout(scenario_.model, scenario_.run, config_);
    layout_.balanced = false;
    base_ = time_.passes(config_, layout_);
  }
  ChunkPricer(const ChunkPricer&) = delete;
  ChunkPricer& operator=(const ChunkPricer&) = delete;

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const layout::StageLayout& even() const { return layout_; }
  [[nodiscard]] const PipelinePasses& even_passes() const { return base_; }

  /// Consecutive layers of the model, recomputed as the strategy says, with the table or head where they begin or end it.
  [[nodiscard]] layout::Chunk chunk_of(const plan::LayerRange& range) const {
    const auto& model = scenario_.model;
    layout::Chunk chunk;
    chunk.layers_by_kind.assign(model.kinds.size(), 0);
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) ++chunk.layers_by_kind[index(model.layer_kind[static_cast<std::size_t>(i)])];
    chunk.embedding = range.first == 0;
    chunk.head = range.first + range.count == model.layers();
    chunk.mtp_blocks = chunk.head ? model.mtp_depth : 0;
    return with_mode(std::move(chunk), config_.recompute);
  }
  [[nodiscard]] static layout::Chunk with_mode(layout::Chunk chunk, Recompute mode) {
    chunk.full_recompute = mode == Recompute::full ? chunk.layers() : 0;
    chunk.selective_recompute = mode == Recompute::selective ? chunk.layers() : 0;
    return chunk;
  }

  const PassTimes& times(const layout::Chunk& chunk) {
    const auto [at, fresh] = times_.try_emplace(key_of(chunk));
    if (!fresh) return at->second;
    // A chunk takes the same wherever it is: the first place serves.
    layout::Chunk& place = layout_.stages.front().front();
    std::swap(place, scratch_ = chunk);
    at->second = time_.passes(config_, layout_).times.front();
    std::swap(place, scratch_);
    return at->second;
  }

  const StageMemory& memory(std::size_t stage, const std::vector<layout::Chunk>& chunks) {
    Key key{static_cast<std::int64_t>(stage)};
    for (const auto& chunk : chunks) {
      const Key one = key_of(chunk);
      key.insert(key.end(), one.begin(), one.end());
    }
    const auto [at, fresh] = memories_.try_emplace(std::move(key));
    if (!fresh) return at->second;
    const memory::MemoryModel::Parts parts = memory_.parts(config_);
    memory::price_stage(parts.stage(scenario_, config_, chunks, stage), ReadingTime::steady, price_);
    return at->second = price_.memory;
  }
  [[nodiscard]] bool fits(std::size_t stage, const std::vector<layout::Chunk>& chunks) { return memory(stage, chunks).reserved <= memory_.budget(); }

  /// Bytes that one micro-batch of a layer keeps, by mode.
  [[nodiscard]] const std::array<double, 3>& saved(std::size_t kind) { return memory_.parts(config_).shape.kinds[kind].saved; }

 private:
  using Key = std::vector<std::int64_t>;
  [[nodiscard]] static Key key_of(const layout::Chunk& chunk) {
    Key key = chunk.layers_by_kind;
    key.insert(key.end(), {chunk.embedding ? 1 : 0, chunk.head ? 1 : 0, chunk.mtp_blocks, chunk.full_recompute, chunk.selective_recompute});
    return key;
  }

  Scenario scenario_;
  ParallelConfig config_;
  memory::MemoryModel memory_;
  perf::TimeModel time_;
  layout::StageLayout layout_;
  PipelinePasses base_;
  layout::Chunk scratch_;
  memory::StagePrice price_;
  std::map<Key, PassTimes> times_;
  std::map<Key, StageMemory> memories_;
};

double backward_of(const PassTimes& times) { return times.recompute.value + times.backward_input.value + times.backward_weight.value; }

}  // namespace

std::optional<BalancedStrategy> balance_strategy(const Scenario& scenario, const ParallelConfig& config) {
  if (config.pp == 1 || config.recompute == Recompute::per_layer) return std::nullopt;
  ChunkPricer pricer(scenario, config);
  const PipelinePasses& even = pricer.even_passes();
  plan::BalanceTask task;
  task.schedule = config.schedule;
  task.shape = even.shape;
  task.layers = scenario.model.layers();
  task.hop = even.hop;
  task.p2p_exposed = even.p2p_exposed;
  std::vector<layout::Chunk> chunks;
  task.price = [&](int stage, std::span<const plan::LayerRange> ranges, std::span<PassTimes> times) {
    chunks.clear();
    for (std::size_t c = 0; c < ranges.size(); ++c) {
      chunks.push_back(pricer.chunk_of(ranges[c]));
      times[c] = pricer.times(chunks.back());
    }
    return pricer.fits(index(stage), chunks);
  };
  const auto balanced = plan::balance_layers(task);
  if (!balanced) return std::nullopt;

  BalancedStrategy out;
  out.layers_per_chunk.assign(index(config.vpp), std::vector<std::int64_t>(index(config.pp), 0));
  for (int s = 0; s < config.pp; ++s)
    for (int c = 0; c < static_cast<int>(balanced->layers[index(s)].size()); ++c) {
      const int place = chunk_position(config.schedule, even.shape, s, c);
      out.layers_per_chunk[index(place / config.pp)][index(place % config.pp)] = balanced->layers[index(s)][index(c)];
    }
  Scenario laid_out = pricer.scenario();
  laid_out.run.layers_per_chunk = out.layers_per_chunk;
  out.step = estimate_time(laid_out, config).step;
  out.pipeline = balanced->makespan;
  out.bound = balanced->bound;
  out.proven = balanced->proven;
  out.replays = balanced->replays;
  out.even_pipeline = replay_schedule(config.schedule, even.input()).makespan;
  out.even_fits = true;
  for (std::size_t s = 0; s < pricer.even().stages.size(); ++s) out.even_fits = out.even_fits && pricer.fits(s, pricer.even().stages[s]);
  return out;
}

std::vector<LayerDescription> describe_layers(const Scenario& scenario, const ParallelConfig& config) {
  ParallelConfig plain = config;
  if (plain.recompute == Recompute::per_layer) plain.recompute = Recompute::off;
  ChunkPricer pricer(scenario, plain);
  const auto& model = pricer.scenario().model;
  const std::size_t stage = pricer.even().stages.size() - 1;
  // What one more layer, table or head adds to a chunk that already has a layer.
  layout::Chunk one;
  one.layers_by_kind.assign(model.kinds.size(), 0);
  ++one.layers_by_kind[index(model.layer_kind.front())];
  const std::size_t others = pricer.even().stages[stage].size() - 1;
  const auto states = [&](const layout::Chunk& chunk) {
    std::vector<layout::Chunk> chunks(others, one);
    chunks.push_back(chunk);
    return pricer.memory(stage, chunks).static_bytes().value;
  };
  const auto describe = [&](std::string name, std::string type, const layout::Chunk& more) {
    LayerDescription out{.name = std::move(name), .type = std::move(type)};
    out.parameter_memory = {states(more) - states(one)};
    for (std::size_t mode = 0; mode < kLayerModes; ++mode) {
      const auto as = static_cast<Recompute>(mode);
      const PassTimes with = pricer.times(ChunkPricer::with_mode(more, as)), without = pricer.times(ChunkPricer::with_mode(one, as));
      if (as == Recompute::off) out.forward = {with.forward.value - without.forward.value};
      out.backward[mode] = {backward_of(with) - backward_of(without)};
    }
    return out;
  };

  std::vector<LayerDescription> out;
  layout::Chunk table = one;
  table.embedding = true;
  out.push_back(describe("HEAD", "HEAD", table));
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    layout::Chunk more = one;
    ++more.layers_by_kind[k];
    LayerDescription body = describe("BODY_" + std::to_string(k), "BODY", more);
    body.layers = std::count(model.layer_kind.begin(), model.layer_kind.end(), static_cast<int>(k));
    for (std::size_t mode = 0; mode < kLayerModes; ++mode) body.activations[mode] = {pricer.saved(k)[mode]};
    if (body.layers > 0) out.push_back(std::move(body));
  }
  layout::Chunk head = one;
  head.head = true;
  head.mtp_blocks = model.mtp_depth;
  out.push_back(describe("TAIL", "TAIL", head));
  return out;
}

}  // namespace nd
