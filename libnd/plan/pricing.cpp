// SPDX-License-Identifier: Apache-2.0
// Prices of one strategy: those of the models, with the plan where every layer has a mode of its own.
#include <algorithm>

#include "nd/memory.hpp"
#include "nd/perf.hpp"
#include "nd/plan.hpp"
#include "nd/potentials.hpp"
#include "plan/planner.hpp"

namespace nd {

namespace {

/// Lists of recomputed layers belong to the stated strategy: a plan has its own.
Scenario without_lists(Scenario scenario) {
  scenario.run.full_recompute_layers.clear();
  scenario.run.selective_recompute_layers.clear();
  return scenario;
}

/// The models with the plan of one strategy.
class Planned {
 public:
  Planned(const Scenario& scenario, const ParallelConfig& config)
      : scenario_(without_lists(scenario)), memory(scenario_), time(scenario_), planner_(scenario_, memory, time), plan(planner_.plan(config)) {}
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const layout::StageLayout& layout() const { return *plan.layout; }

 private:
  Scenario scenario_;

 public:
  memory::MemoryModel memory;
  perf::TimeModel time;

 private:
  plan::Planner planner_;

 public:
  const plan::StrategyPlan& plan;
};

bool planned(const ParallelConfig& config) { return config.recompute == Recompute::per_layer; }

void add_layers(const layout::Chunk& chunk, PlannedLayers at, std::vector<PlannedLayers>& out) {
  const auto add = [&](int kind, std::int64_t layers, const layout::KindModes& modes) {
    at.kind = kind;
    for (const auto& [mode, count] : {std::pair{Recompute::full, modes.full}, std::pair{Recompute::selective, modes.selective},
                                      std::pair{Recompute::off, layers - modes.full - modes.selective}}) {
      at.mode = mode;
      at.count = count;
      if (count > 0) out.push_back(at);
    }
  };
  const std::size_t kinds = chunk.layers_by_kind.size();
  const auto of = [&chunk](std::size_t index) { return chunk.modes.empty() ? layout::KindModes{} : chunk.modes[index]; };
  for (std::size_t k = 0; k < kinds; ++k) add(static_cast<int>(k), chunk.layers_by_kind[k], of(k));
  add(-1, chunk.mtp_blocks, of(kinds));
}

}  // namespace

MemoryBreakdown estimate_memory(const Scenario& scenario, const ParallelConfig& config, ReadingTime reading) {
  MemoryBreakdown out;
  if (!planned(config)) {
    memory::MemoryModel(scenario).estimate(config, out, reading);
    return out;
  }
  Planned with(scenario, config);
  with.memory.estimate(config, with.layout(), out, reading);
  return out;
}

std::vector<MemoryLine> memory_ledger(const Scenario& scenario, const ParallelConfig& config, int stage) {
  if (!planned(config)) return memory::MemoryModel(scenario).ledger(config, stage);
  Planned with(scenario, config);
  return with.memory.ledger(config, with.layout(), stage);
}

TimeBreakdown estimate_time(const Scenario& scenario, const ParallelConfig& config) {
  TimeBreakdown out;
  if (!planned(config)) {
    perf::TimeModel(scenario).estimate(config, out);
    return out;
  }
  Planned with(scenario, config);
  with.time.estimate(config, with.layout(), out);
  return out;
}

PipelinePasses pipeline_passes(const Scenario& scenario, const ParallelConfig& config) {
  if (!planned(config)) return perf::TimeModel(scenario).passes(config);
  Planned with(scenario, config);
  return with.time.passes(config, with.layout());
}

LayerPlan plan_layers(const Scenario& scenario, const ParallelConfig& config) {
  Planned with(scenario, config);
  LayerPlan out;
  out.fits = with.plan.peak.fit != Fit::no;
  memory::StagePrice price;
  const memory::MemoryModel::Parts parts = with.memory.parts(config);
  for (std::size_t s = 0; s < with.layout().stages.size(); ++s) {
    const auto& chunks = with.layout().stages[s];
    for (std::size_t c = 0; c < chunks.size(); ++c)
      add_layers(chunks[c], {.stage = static_cast<int>(s), .chunk = static_cast<int>(c)}, out.layers);
    memory::price_stage(parts.stage(with.scenario(), config, chunks, s), ReadingTime::steady, price);
    const auto at = [&](Instant instant) { return price.held[static_cast<std::size_t>(instant)]; };
    const auto reserved = [&](double held) { return Bytes{held > 0 ? held + parts.reserve.constant : 0.0}; };
    out.stages.push_back({reserved(std::max(at(Instant::loss), at(Instant::backward))), reserved(at(Instant::end_of_backward))});
  }
  TimeBreakdown planned_time, full_time;
  with.time.estimate(config, with.layout(), planned_time);
  ParallelConfig full = config;
  full.recompute = Recompute::full;
  with.time.estimate(full, full_time);
  out.saved = {std::max(0.0, full_time.step.value - planned_time.step.value)};
  return out;
}

namespace {

std::vector<PlannedLayers> layers_of(const layout::StageLayout& layout) {
  std::vector<PlannedLayers> out;
  for (std::size_t s = 0; s < layout.stages.size(); ++s)
    for (std::size_t c = 0; c < layout.stages[s].size(); ++c)
      add_layers(layout.stages[s][c], {.stage = static_cast<int>(s), .chunk = static_cast<int>(c)}, out);
  return out;
}

/// A layout whose layers are turned to full recompute one by one.
class Tightening {
 public:
  Tightening(Planned& with, const ParallelConfig& config) : with_(with), config_(config), layout_(with.layout()) {
    for (auto& stage : layout_.stages)
      for (layout::Chunk& chunk : stage) {
        chunk.modes.resize(chunk.layers_by_kind.size() + 1);
        for (std::size_t k = 0; k < chunk.modes.size(); ++k) full_ += chunk.modes[k].full;
      }
  }

  [[nodiscard]] RecomputeStep now(const PlannedLayers& changed) {
    MemoryBreakdown memory;
    TimeBreakdown time;
    with_.time.estimate(config_, layout_, time);
    with_.memory.estimate(config_, layout_, memory);
    return {.changed = changed, .full_layers = full_, .step = time.step, .peak = memory.peak().reserved, .layers = layers_of(layout_)};
  }

  /// Turns the layer to full that costs least; false when all are.
  bool next(RecomputeStep& out) {
    bool found = false;
    PlannedLayers best;
    for (std::size_t s = 0; s < layout_.stages.size(); ++s)
      for (std::size_t c = 0; c < layout_.stages[s].size(); ++c)
        for (std::size_t k = 0; k < layout_.stages[s][c].modes.size(); ++k)
          for (const Recompute from : {Recompute::off, Recompute::selective}) {
            const bool block = k + 1 == layout_.stages[s][c].modes.size();
            const PlannedLayers change{static_cast<int>(s), static_cast<int>(c), block ? -1 : static_cast<int>(k), 1, from};
            if (!turn(change, 1)) continue;
            RecomputeStep tried = now(change);
            turn(change, -1);
            if (found && !(tried.step < out.step || (tried.step == out.step && tried.peak < out.peak))) continue;
            found = true;
            best = change;
            out = std::move(tried);
          }
    if (found) turn(best, 1);
    return found;
  }

 private:
  /// sign 1: one layer of that mode becomes full; -1: back again. False when there is none.
  bool turn(const PlannedLayers& change, std::int64_t sign) {
    layout::Chunk& chunk = layout_.stages[static_cast<std::size_t>(change.stage)][static_cast<std::size_t>(change.chunk)];
    const std::size_t k = change.kind < 0 ? chunk.modes.size() - 1 : static_cast<std::size_t>(change.kind);
    layout::KindModes& modes = chunk.modes[k];
    const std::int64_t layers = change.kind < 0 ? chunk.mtp_blocks : chunk.layers_by_kind[k];
    const std::int64_t there = change.mode == Recompute::selective ? modes.selective : layers - modes.selective - modes.full;
    if (sign > 0 && there <= 0) return false;
    modes.full += sign;
    if (change.mode == Recompute::selective) modes.selective -= sign;
    if (change.kind >= 0) {
      chunk.full_recompute += sign;
      if (change.mode == Recompute::selective) chunk.selective_recompute -= sign;
    }
    full_ += sign;
    return true;
  }

  Planned& with_;
  const ParallelConfig& config_;
  layout::StageLayout layout_;
  std::int64_t full_ = 0;
};

}  // namespace

std::vector<RecomputeStep> recompute_potentials(const Scenario& scenario, const ParallelConfig& config) {
  Planned with(scenario, config);
  Tightening plans(with, config);
  std::vector<RecomputeStep> out{plans.now({.count = 0})};
  for (RecomputeStep step; plans.next(step);) out.push_back(step);
  const Bytes budget = with.memory.budget();
  std::erase_if(out, [&](const RecomputeStep& step) { return step.peak > budget; });
  return out;
}

StatedPlan state_plan(const Scenario& scenario, const ParallelConfig& config) {
  const LayerPlan plan = plan_layers(scenario, config);
  StatedPlan out{without_lists(scenario), config};
  auto& run = out.scenario.run;
  std::vector<std::int64_t> full(plan.stages.size(), 0), selective = full;
  std::int64_t fulls = 0, selectives = 0;
  for (const PlannedLayers& range : plan.layers) {
    if (range.kind < 0) continue;  // no trainer counts the blocks of MTP in these lists
    const auto stage = static_cast<std::size_t>(range.stage);
    if (range.mode == Recompute::full) full[stage] += range.count, fulls += range.count;
    if (range.mode == Recompute::selective) selective[stage] += range.count, selectives += range.count;
  }
  const bool any = fulls + selectives > 0;
  out.config.recompute = !any ? Recompute::off : fulls >= selectives ? Recompute::full : Recompute::selective;
  run.strategy.recompute = out.config.recompute;
  const std::int64_t layers = scenario.model.layers();
  if (!any || fulls == layers || selectives == layers) return out;
  if (fulls > 0) run.full_recompute_layers = std::move(full);
  if (selectives > 0) run.selective_recompute_layers = std::move(selective);
  return out;
}

}  // namespace nd
