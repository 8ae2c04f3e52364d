// SPDX-License-Identifier: Apache-2.0
#include "nd/potentials_report.hpp"

#include <fmt/format.h>

#include "nd/search_space.hpp"
#include "report/html_parts.hpp"
#include "report/strategy_text.hpp"
#include "report/text_table.hpp"

namespace nd {

namespace {

/// "stage 0 chunk 0 kind 1": kind as in the layer kinds of the model; MTP for its blocks.
std::string place_text(const PlannedLayers& layer) {
  return fmt::format("stage {} chunk {} {}", layer.stage, layer.chunk, layer.kind < 0 ? std::string("MTP") : fmt::format("kind {}", layer.kind));
}

std::string layers_text(const std::vector<PlannedLayers>& layers) {
  std::string out;
  for (const PlannedLayers& range : layers) out += fmt::format("{}{}: {} {}", out.empty() ? "" : "; ", place_text(range), range.count, to_text(range.mode));
  return out;
}

}  // namespace

RecomputePotentials recompute_potentials(const Scenario& scenario, const std::vector<PricedCandidate>& candidates) {
  RecomputePotentials out;
  for (const PricedCandidate& candidate : candidates) {
    out.budget = candidate.memory.budget;
    if (candidate.config.recompute == Recompute::per_layer)
      out.strategies.push_back({candidate.rank, candidate.config, recompute_potentials(scenario, candidate.config)});
  }
  return out;
}

std::string potentials_csv(const RecomputePotentials& potentials) {
  std::string out = "rank,step";
  for (const auto& info : dimension_list()) out += "," + std::string(info.name);
  out += ",changed_layer,changed_from,full_layers,memory_gib,step_time_s,layers\n";
  for (const auto& strategy : potentials.strategies)
    for (std::size_t i = 0; i < strategy.steps.size(); ++i) {
      const RecomputeStep& step = strategy.steps[i];
      out += fmt::format("{},{}", strategy.rank, i);
      for (const auto& info : dimension_list()) out += "," + value_text(info.id, value_of(strategy.config, info.id));
      out += fmt::format(",{},{},{},{},{},{}\n", step.changed.count > 0 ? place_text(step.changed) : std::string(),
                         step.changed.count > 0 ? std::string(to_text(step.changed.mode)) : std::string(), step.full_layers, to_gib(step.peak), step.step.value, layers_text(step.layers));
    }
  return out;
}

std::string potentials_svg(const RecomputePotentials& potentials) {
  report::Scatter plot{.title = "Memory and step time of plans that recompute one more layer each", .x = "memory of the heaviest stage, GiB", .y = "step time, s", .points = {},
                       .limit = to_gib(potentials.budget)};
  for (const auto& strategy : potentials.strategies)
    for (std::size_t i = 0; i < strategy.steps.size(); ++i)
      plot.points.push_back({to_gib(strategy.steps[i].peak), strategy.steps[i].step.value,
                             fmt::format("rank {}, {} layers in full, {:.1f} GiB, {}: {}", strategy.rank, strategy.steps[i].full_layers, to_gib(strategy.steps[i].peak),
                                         report::short_seconds(strategy.steps[i].step.value), report::short_strategy(strategy.config)),
                             i == 0});
  if (plot.points.empty()) return {};
  std::string svg = report::scatter(plot);
  const std::string tag = "<svg ";
  return svg.replace(0, tag.size(), "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" ");
}

}  // namespace nd
