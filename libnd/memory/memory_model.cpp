// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_model.hpp"

#include "memory/ledger_lines.hpp"

namespace nd::memory {

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
  return layouts_.emplace(key, layout::make_layout(scenario_.model, scenario_.run, config)).first->second;
}

void MemoryModel::estimate(const ParallelConfig& config, MemoryBreakdown& out, ReadingTime reading) {
  const ShapeSummary& shape = shape_summary(config);
  const layout::StageLayout& layout = stage_layout(config);
  const StateRates rates = state_rates(scenario_, config);
  const ReserveRule reserve = reserve_rule(scenario_, config);

  out.stages.resize(layout.stages.size());
  out.peak_stage = 0;
  const auto decides = [reading](const StageMemory& stage) {
    return reading == ReadingTime::steady ? stage.reserved : stage.allocated;
  };
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    price_stage({scenario_, config, shape, rates, reserve, layout.stages[s], static_cast<int>(s)}, reading, price_);
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
  const StageInput input{scenario_, config, shape, rates, reserve, chunks, stage};
  price_stage(input, ReadingTime::steady, price_);
  return ledger_lines(input, price_);
}

}  // namespace nd::memory
