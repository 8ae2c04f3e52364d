// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_model.hpp"

#include "layout/schedules/table.hpp"
#include "memory/ledger_lines.hpp"

namespace nd::memory {

namespace {

/// Layouts number chunks place by place, stage by stage in a loop; a schedule may put them elsewhere, or twice.
layout::StageLayout arrange(layout::StageLayout looped, const ParallelConfig& config) {
  const layout::ScheduleRow& row = layout::schedule_row(config.schedule);
  const ScheduleShape shape = schedule_shape(config);
  if (layout::why_invalid(row, shape)) return looped;
  layout::StageLayout out;
  out.balanced = looped.balanced;
  out.stages.resize(looped.stages.size());
  for (int stage = 0; stage < config.pp; ++stage) {
    for (int chunk = 0; chunk < row.local_chunks(shape); ++chunk) {
      const int place = row.position(shape, stage, chunk);
      out.stages[static_cast<std::size_t>(stage)].push_back(
          looped.stages[static_cast<std::size_t>(place % config.pp)][static_cast<std::size_t>(place / config.pp)]);
    }
  }
  return out;
}

}  // namespace

const ShapeSummary& MemoryModel::shape_summary(const ParallelConfig& config) {
  const LayerShape shape = layout::layer_shape(scenario_.run, config);
  const auto found = shapes_.find(shape);
  if (found != shapes_.end()) return found->second;
  return shapes_.emplace(shape, summarise(scenario_, shape)).first->second;
}

const layout::StageLayout& MemoryModel::stage_layout(const ParallelConfig& config) {
  const LayoutKey key{.pp = config.pp, .vpp = config.vpp, .recompute = config.recompute, .schedule = config.schedule};
  const auto found = layouts_.find(key);
  if (found != layouts_.end()) return found->second;
  return layouts_.emplace(key, arrange(layout::make_layout(scenario_.model, scenario_.run, config), config)).first->second;
}

const std::vector<KeptFront>& MemoryModel::fronts(const ParallelConfig& config) {
  const FrontKey key{.pp = config.pp,
                     .vpp = config.vpp,
                     .micro_batch_num = config.micro_batch_num,
                     .seq_split = config.seq_split,
                     .schedule = config.schedule};
  const auto found = fronts_.find(key);
  if (found != fronts_.end()) return found->second;
  std::vector<KeptFront> made;
  const auto& stages = stage_layout(config).stages;
  for (std::size_t s = 0; s < stages.size(); ++s) made.emplace_back(config, static_cast<int>(s), stages[s].size());
  return fronts_.emplace(key, std::move(made)).first->second;
}

void MemoryModel::estimate(const ParallelConfig& config, MemoryBreakdown& out, ReadingTime reading) {
  const ShapeSummary& shape = shape_summary(config);
  const layout::StageLayout& layout = stage_layout(config);
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

std::vector<MemoryLine> MemoryModel::ledger(const ParallelConfig& config, int stage) {
  const ShapeSummary& shape = shape_summary(config);
  const auto& chunks = stage_layout(config).stages.at(static_cast<std::size_t>(stage));
  const StateRates rates = state_rates(scenario_, config);
  const ReserveRule reserve = reserve_rule(scenario_, config);
  const StageInput input{scenario_, config, shape, rates, reserve, chunks, fronts(config)[static_cast<std::size_t>(stage)], stage};
  price_stage(input, ReadingTime::steady, price_);
  return ledger_lines(input, price_);
}

}  // namespace nd::memory
