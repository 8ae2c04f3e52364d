// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_model.hpp"

#include <algorithm>

#include "memory/ledger_lines.hpp"

namespace nd::memory {

namespace {

/// Shapes kept at a time. Searches visit them in order, so that one that is dropped rarely comes back.
constexpr std::size_t kMostShapes = 8192;

}  // namespace

const ShapeSummary& MemoryModel::shape_summary(const ParallelConfig& config) {
  const LayerShape shape = layout::layer_shape(scenario_.run, config);
  const auto found = shapes_.find(shape);
  if (found != shapes_.end()) return found->second;
  if (shapes_.size() >= kMostShapes) {
    shapes_.clear();
    now_.set = false;
  }
  return shapes_.emplace(shape, summarise(scenario_, shape)).first->second;
}

const layout::StageLayout& MemoryModel::stage_layout(const ParallelConfig& config) {
  const LayoutKey key{.pp = config.pp, .vpp = config.vpp, .recompute = config.recompute, .schedule = config.schedule};
  const auto found = layouts_.find(key);
  if (found != layouts_.end()) return found->second;
  return layouts_.emplace(key, layout::scheduled_layout(scenario_.model, scenario_.run, config)).first->second;
}

const std::vector<KeptFront>& MemoryModel::fronts(const ParallelConfig& config) {
  const FrontKey key{.pp = config.pp,
                     .vpp = config.vpp,
                     .micro_batch_num = KeptFront::representative_batch(config),
                     .micro_batch_group = config.micro_batch_group,
                     .seq_split = config.seq_split,
                     .schedule = config.schedule};
  const auto found = fronts_.find(key);
  if (found != fronts_.end()) return found->second;
  std::vector<KeptFront> made;
  const auto& stages = stage_layout(config).stages;
  for (std::size_t s = 0; s < stages.size(); ++s) made.emplace_back(config, static_cast<int>(s), stages[s].size());
  return fronts_.emplace(key, std::move(made)).first->second;
}

const MemoryModel::Pipeline& MemoryModel::pipeline(const ParallelConfig& config) {
  const PipelineKey key{.front = {.pp = config.pp,
                                  .vpp = config.vpp,
                                  .micro_batch_num = KeptFront::representative_batch(config),
                                  .micro_batch_group = config.micro_batch_group,
                                  .seq_split = config.seq_split,
                                  .schedule = config.schedule},
                        .recompute = config.recompute};
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second;
  Pipeline made{&stage_layout(config), &fronts(config), {}};
  const auto& stages = made.layout->stages;
  const auto covers = [&](std::size_t a, std::size_t b) { return stages[a] == stages[b] && (*made.fronts)[a].covers((*made.fronts)[b]); };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    bool covered = false;
    for (const LeadingStage& other : made.leading) covered = covered || covers(other.stage, s);
    if (covered) continue;
    std::erase_if(made.leading, [&](const LeadingStage& other) { return covers(s, other.stage); });
    made.leading.push_back({s, kept_layers(stages[s], (*made.fronts)[s])});
  }
  return pipelines_.emplace(key, std::move(made)).first->second;
}

const MemoryModel::Sharding& MemoryModel::sharding(const ParallelConfig& config) {
  const bool accumulates = config.micro_batch_num > 1;
  for (const Sharding& known : shardings_)
    if (known.zero == config.zero && known.op == config.op && known.accumulates == accumulates) return known;
  Sharding made{.zero = config.zero, .op = config.op, .accumulates = accumulates, .rates = state_rates(scenario_, config), .bound = {}};
  made.bound = static_rates(scenario_, config, made.rates);
  return shardings_.emplace_back(made);
}

void MemoryModel::move_to(const ParallelConfig& config) {
  const ParallelConfig& last = now_.config;
  const bool same_degrees = now_.set && last.dp == config.dp && last.tp == config.tp && last.pp == config.pp && last.cp == config.cp &&
                            last.ep == config.ep && last.etp == config.etp;
  const bool same_shape = same_degrees && last.micro_batch_size == config.micro_batch_size &&
                          last.sequence_parallel == config.sequence_parallel && last.cp_algorithm == config.cp_algorithm;
  const bool same_pipeline = same_shape && last.micro_batch_num == config.micro_batch_num && last.vpp == config.vpp &&
                             last.schedule == config.schedule && last.seq_split == config.seq_split && last.micro_batch_group == config.micro_batch_group &&
                             last.recompute == config.recompute;
  if (same_pipeline) return;
  if (!same_degrees) {
    shardings_.clear();
    now_.reserve = reserve_rule(scenario_, config);
  }
  if (!same_shape) now_.shape = &shape_summary(config);
  now_.pipeline = &pipeline(config);
  now_.config = config;
  now_.set = true;
  now_.prepared = false;
  const auto& leading = now_.pipeline->leading;
  now_.elements.resize(leading.size());
  now_.kept.resize(leading.size());
  for (std::size_t i = 0; i < leading.size(); ++i) {
    now_.elements[i] = stage_content(scenario_.model, *now_.shape, now_.pipeline->layout->stages[leading[i].stage]).elements;
    now_.kept[i] = config.recompute == Recompute::per_layer ? lightest_bound(leading[i].kept, *now_.shape) : kept_bound(leading[i].kept, *now_.shape);
  }
}

Bytes MemoryModel::lower_bound(const ParallelConfig& config) {
  move_to(config);
  const StaticRates& rates = sharding(config).bound;
  double most = 0;
  for (std::size_t i = 0; i < now_.kept.size(); ++i)
    most = std::max(most, stage_bound(now_.reserve, static_bound(now_.elements[i], rates), now_.kept[i]));
  return {most};
}

PeakMemory MemoryModel::peak(const ParallelConfig& config) {
  move_to(config);
  const StateRates& rates = sharding(config).rates;
  const Pipeline& pipeline = *now_.pipeline;
  if (stages_.size() < pipeline.leading.size()) stages_.resize(pipeline.leading.size());
  PeakMemory out{Bytes{}, Fit::yes};
  for (std::size_t i = 0; i < pipeline.leading.size(); ++i) {
    const std::size_t s = pipeline.leading[i].stage;
    const StageInput input{scenario_, config, *now_.shape, rates, now_.reserve, pipeline.layout->stages[s], (*pipeline.fronts)[s], static_cast<int>(s)};
    if (!now_.prepared) prepare_stage(input, stages_[i]);
    price_prepared_stage(input, ReadingTime::steady, stages_[i]);
    const StageMemory& stage = stages_[i].memory;
    out.reserved = std::max(out.reserved, stage.reserved);
    out.fit = std::max(out.fit, judge_fit(stage, budget_, scenario_.profile.memory.model_error));
  }
  now_.prepared = true;
  return out;
}

MemoryModel::Parts MemoryModel::parts(const ParallelConfig& config) {
  move_to(config);
  return {*now_.pipeline->layout, *now_.shape, sharding(config).rates, now_.reserve, *now_.pipeline->fronts};
}

void MemoryModel::estimate(const ParallelConfig& config, MemoryBreakdown& out, ReadingTime reading) {
  estimate(config, stage_layout(config), out, reading);
}

void MemoryModel::estimate(const ParallelConfig& config, const layout::StageLayout& layout, MemoryBreakdown& out, ReadingTime reading) {
  const ShapeSummary& shape = shape_summary(config);
  const std::vector<KeptFront>& kept = fronts(config);
  const StateRates rates = state_rates(scenario_, config);
  const ReserveRule reserve = reserve_rule(scenario_, config);

  out.stages.resize(layout.stages.size());
  out.peak_stage = 0;
  const auto decides = [reading](const StageMemory& stage) {
    return reading == ReadingTime::steady ? stage.reserved : stage.allocated;
  };
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    price_stage({scenario_, config, shape, rates, reserve, layout.stages[s], kept[s], static_cast<int>(s)}, reading, price_);
    out.stages[s] = price_.memory;
    if (decides(out.stages[s]) > decides(out.peak())) out.peak_stage = static_cast<int>(s);
  }
  out.budget = budget_;
  out.fit = Fit::yes;
  for (const StageMemory& stage : out.stages) out.fit = std::max(out.fit, judge_fit(stage, budget_, scenario_.profile.memory.model_error));
}

std::vector<MemoryLine> MemoryModel::ledger(const ParallelConfig& config, const layout::StageLayout& layout, int stage) {
  const ShapeSummary& shape = shape_summary(config);
  const auto& chunks = layout.stages.at(static_cast<std::size_t>(stage));
  const StateRates rates = state_rates(scenario_, config);
  const ReserveRule reserve = reserve_rule(scenario_, config);
  const StageInput input{scenario_, config, shape, rates, reserve, chunks, fronts(config)[static_cast<std::size_t>(stage)], stage};
  price_stage(input, ReadingTime::steady, price_);
  return ledger_lines(input, price_);
}

}  // namespace nd::memory
