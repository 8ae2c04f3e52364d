// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "nd/report.hpp"
#include "report/text_table.hpp"
#include "search/memory_parts.hpp"

namespace nd {

namespace {

using report::Align;
using report::short_seconds;
using report::TextTable;

std::string gib(Bytes amount) { return fmt::format("{:.3f}", to_gib(amount)); }

std::string stage_table(const PricedCandidate& candidate) {
  std::vector<TextTable::Column> columns{{"stage", Align::right}, {"layers", Align::right}, {"instant", Align::left}};
  for (const auto& part : search::kMemoryParts) columns.push_back({std::string(part.name), Align::right});
  columns.push_back({"allocated", Align::right});
  columns.push_back({"reserved", Align::right});
  TextTable table(columns);
  for (const auto& stage : candidate.memory.stages) {
    std::string layers;
    const auto index = static_cast<std::size_t>(stage.stage);
    if (index < candidate.layers.size())
      for (const auto count : candidate.layers[index]) layers += (layers.empty() ? "" : "+") + std::to_string(count);
    std::vector<std::string> cells{std::to_string(stage.stage), layers, to_text(stage.instant)};
    for (const auto& part : search::kMemoryParts) cells.push_back(gib(stage.*part.bytes));
    cells.push_back(gib(stage.allocated));
    cells.push_back(gib(stage.reserved));
    table.add(std::move(cells));
  }
  return table.text("  ");
}

std::string ledger_table(const std::vector<MemoryLine>& lines, Bytes reserved) {
  TextTable table({{"part", Align::left}, {"op", Align::left}, {"tensor", Align::left}, {"GiB", Align::right}});
  const auto add = [&table](std::string_view part, std::string_view op, std::string_view tensor, Bytes bytes) {
    table.add({std::string(part), std::string(op), std::string(tensor), fmt::format("{:.4f}", to_gib(bytes))});
  };
  Bytes sum{};
  for (const auto& line : lines) {
    add(line.part, line.op, line.tensor, line.bytes);
    sum += line.bytes;
  }
  add("allocated", "", "sum of the above", sum);
  add("around it", "", "holes of the allocator, context, communicators", reserved - sum);
  add("reserved", "", "what the budget is compared with", reserved);
  return table.text("  ");
}

std::string time_table(const TimeBreakdown& time) {
  TextTable table({{"part", Align::left}, {"exposed", Align::right}, {"share", Align::right}, {"hidden", Align::right}});
  for (std::size_t i = 0; i < kTimePartCount; ++i)
    table.add({std::string(to_text(static_cast<TimePart>(i))), short_seconds(time.exposed[i].value),
               fmt::format("{:.1f} %", 100 * (time.exposed[i] / time.step)), short_seconds(time.hidden[i].value)});
  table.add({"step", short_seconds(time.step.value), "100.0 %", ""});
  return table.text("  ");
}

/// "2 full, 6 selective, 1 off" per stage and chunk, and what the stage then holds.
std::string plan_table(const Scenario& scenario, const LayerPlan& plan) {
  TextTable table({{"stage", Align::right}, {"chunk", Align::right}, {"layers", Align::left}, {"warm-up", Align::right}, {"end of backward", Align::right}});
  const bool kinds = scenario.model.kinds.size() > 1;
  for (std::size_t i = 0; i < plan.layers.size();) {
    const PlannedLayers& first = plan.layers[i];
    std::string layers;
    for (; i < plan.layers.size() && plan.layers[i].stage == first.stage && plan.layers[i].chunk == first.chunk; ++i) {
      const PlannedLayers& range = plan.layers[i];
      layers += fmt::format("{}{} {}", layers.empty() ? "" : ", ", range.count, to_text(range.mode));
      if (range.kind < 0) layers += " (MTP)";
      else if (kinds) layers += scenario.model.kinds[static_cast<std::size_t>(range.kind)].ffn.kind == FfnKind::moe ? " (MoE)" : " (dense)";
    }
    const StageMoments& moments = plan.stages[static_cast<std::size_t>(first.stage)];
    table.add({std::to_string(first.stage), std::to_string(first.chunk), layers, gib(moments.warm_up),
               moments.end_of_backward.value > 0 ? gib(moments.end_of_backward) : std::string("-")});
  }
  return table.text("  ");
}

std::string config_lines(const ParallelConfig& config) {
  std::string out;
  for (const auto& info : dimension_list())
    out += fmt::format("{}{}={}", out.empty() ? "  " : " ", info.name, value_text(info.id, value_of(config, info.id)));
  return out + "\n";
}

}  // namespace

std::string explain_strategy(const Scenario& scenario, const PricedCandidate& candidate) {
  const auto& memory = candidate.memory;
  const int stage = memory.peak().stage;
  std::string out = candidate.rank > 0 ? fmt::format("Rank {}\n", candidate.rank) : std::string("The stated strategy\n");
  out += config_lines(candidate.config);
  out += fmt::format("\nMemory, GiB per device: {} of {}, fits: {}\n", gib(memory.peak().reserved), gib(memory.budget), to_text(memory.fit));
  out += stage_table(candidate);
  if (candidate.plan) {
    out += fmt::format("\nRecompute by layer, of each kind the first layers first; GiB reserved at either moment; {} of a step saved against full recompute\n",
                       short_seconds(candidate.plan->saved.value));
    out += plan_table(scenario, *candidate.plan);
  }
  out += fmt::format("\nWhat stage {} holds at its peak ({})\n", stage, to_text(memory.peak().instant));
  out += ledger_table(memory_ledger(scenario, candidate.config, stage), memory.peak().reserved);
  out += fmt::format("\nTime of a step: {}, {:.0f} tokens/s/device, {:.1f} model TFLOP/s/device", short_seconds(candidate.time.step.value),
                     candidate.tokens_per_second, candidate.flops_per_second / 1e12);
  if (candidate.mfu) out += fmt::format(", MFU {:.1f} %", 100 * *candidate.mfu);
  out += "\n" + time_table(candidate.time);
  return out;
}

}  // namespace nd
