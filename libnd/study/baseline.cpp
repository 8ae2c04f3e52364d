// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "nd/study.hpp"
#include "search/near_misses.hpp"

namespace nd {

namespace {

/// What a strategy that does not fit lacks.
void add_shortage(Baseline& baseline) {
  if (!baseline.priced || baseline.fits()) return;
  const auto& memory = baseline.priced->memory;
  baseline.lacks = memory.peak().reserved - memory.budget;
  const auto part = search::largest_part(memory.peak());
  baseline.largest_part = part.name;
  baseline.largest = part.bytes;
}

SearchSpace data_parallel_space() {
  SearchSpace space;
  for (const auto id : {Dimension::tp, Dimension::pp, Dimension::cp, Dimension::ep, Dimension::etp, Dimension::vpp}) space.of(id).values = {1};
  return space;
}

/// The reason that refused most combinations.
std::string main_reason(const SearchStats& stats) {
  const auto most = std::max_element(stats.rejected.begin(), stats.rejected.end());
  if (*most == 0) return "no combination of the other dimensions is legal";
  return std::string(describe(static_cast<Rejection>(most - stats.rejected.begin())));
}

}  // namespace

std::string_view to_text(Baseline::Kind kind) {
  constexpr std::array<std::string_view, 2> kText{"stated", "data_parallel"};
  return kText.at(static_cast<std::size_t>(kind));
}

Scenario stated_scenario(const Scenario& scenario, const SearchOptions& options) {
  Scenario out = search_scenario(scenario, fixed_space(scenario.run.strategy), options);
  out.run.full_recompute_layers = scenario.run.full_recompute_layers;
  out.run.selective_recompute_layers = scenario.run.selective_recompute_layers;
  return out;
}

Baseline stated_baseline(const Scenario& scenario, const SearchOptions& options) {
  Baseline out;
  out.kind = Baseline::Kind::stated;
  out.priced = price_strategy(stated_scenario(scenario, options), scenario.run.strategy);
  add_shortage(out);
  return out;
}

Baseline data_parallel_baseline(const Scenario& scenario, const SearchOptions& options) {
  Baseline out;
  out.kind = Baseline::Kind::data_parallel;
  SearchOptions few;
  few.jobs = 1;  // a handful of combinations
  few.top = 1;
  few.near_misses = 1;
  few.memory_limit = options.memory_limit;
  few.memory_reserve = options.memory_reserve;
  const SearchSpace space = data_parallel_space();
  SearchResult result = search_strategies(scenario, space, few);
  if (!result.candidates.empty()) out.priced = std::move(result.candidates.front());
  else if (!result.near_misses.empty()) out.priced = price_strategy(search_scenario(scenario, space, few), result.near_misses.front().config);
  else if (scenario.run.devices > scenario.run.global_batch_size)
    out.problem = std::to_string(scenario.run.devices) + " replicas need as many sequences, the batch has " + std::to_string(scenario.run.global_batch_size);
  else out.problem = main_reason(result.stats);
  if (out.priced) out.priced->rank = 0;  // of another ranking
  add_shortage(out);
  return out;
}

}  // namespace nd
