// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "core/text.hpp"
#include "memory/fit_test.hpp"
#include "nd/search.hpp"
#include "search/space_search.hpp"

namespace nd {

namespace {

using search::tally_rules;

void add_stats(const SearchPartial& part, SearchStats& sum, std::array<std::int64_t, kRejectionCount>& example_at) {
  const SearchStats& stats = part.stats;
  sum.enumerated += stats.enumerated;
  sum.legal += stats.legal;
  sum.priced += stats.priced;
  sum.pruned += stats.pruned;
  sum.fitting += stats.fitting;
  for (std::size_t i = 0; i < kRejectionCount; ++i) {
    sum.rejected[i] += stats.rejected[i];
    if (!stats.example[i] || (sum.example[i] && example_at[i] <= part.example_at[i])) continue;
    sum.example[i] = stats.example[i];
    example_at[i] = part.example_at[i];
  }
  sum.phases.enumerate += stats.phases.enumerate;
  sum.phases.price += stats.phases.price;
  sum.phases.rank += stats.phases.rank;
  sum.phases.detail += stats.phases.detail;
  sum.jobs = std::max(sum.jobs, stats.jobs);
}

std::vector<PricedCandidate> details(const Scenario& scenario, std::span<const RankedCandidate> ranking) {
  std::vector<ParallelConfig> configs;
  for (const auto& candidate : ranking) configs.push_back(candidate.config);
  auto out = price_strategies(scenario, configs, 1);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].rank = static_cast<std::int64_t>(i) + 1;
  return out;
}

/// The result that `parts` add up to; `scenario` as it was priced.
SearchResult assemble(const Scenario& scenario, const SearchOptions& options, std::vector<SearchPartial> parts) {
  search::StopWatch watch;
  const auto rules = tally_rules(options);
  SearchResult out;
  out.budget = memory::memory_budget(scenario);
  out.band = options.tie_band;
  std::array<std::int64_t, kRejectionCount> example_at{};
  search::NearMisses misses(rules.near_misses);
  search::ParetoFront front;
  std::vector<std::vector<RankedCandidate>> rankings;
  for (auto& part : parts) {
    add_stats(part, out.stats, example_at);
    for (const auto& miss : part.misses) misses.add(miss.config, miss.peak);
    for (const auto& candidate : part.front) front.add(candidate);
    out.exhaustive = out.exhaustive && part.exhaustive;
    if (part.end != SearchEnd::complete) out.end = part.end;
    rankings.push_back(std::move(part.ranking));
  }
  out.ranking = search::merge_rankings(rules.order, rules.keep, std::move(rankings));
  out.stats.phases.rank += watch.lap();
  const auto shown = std::min(out.ranking.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, options.top)));
  out.candidates = details(scenario, std::span(out.ranking).first(shown));
  out.pareto = details(scenario, front.front());
  for (auto& candidate : out.pareto) candidate.rank = 0;
  out.near_misses = search::describe_misses(scenario, misses.closest());
  out.stats.phases.detail += watch.lap();
  return out;
}

Error wrong_parts(std::string what, std::string hint) {
  return Error(make_diagnostic(Errc::conflict, SourceRef{{}, 0, 0, "shard"}, std::move(what), std::move(hint)));
}

}  // namespace

SearchResult search_strategies(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options) {
  const Scenario priced = search_scenario(scenario, space, options);
  std::vector<SearchPartial> parts;
  search::SpaceSearch search(priced, options);
  parts.push_back(search.run(space));
  SearchResult out = assemble(priced, options, std::move(parts));
  if (options.on_ranked) search.stream_ranking();
  return out;
}

Result<SearchResult> merge_shards(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options,
                                  std::span<const SearchPartial> parts) {
  if (parts.empty()) return wrong_parts("no part to merge", "name the files that --shard wrote");
  const std::int64_t count = parts.front().shard.count;
  std::vector<const SearchPartial*> by_index(static_cast<std::size_t>(std::max<std::int64_t>(1, count)), nullptr);
  for (const auto& part : parts) {
    const std::string name = std::to_string(part.shard.index + 1) + "/" + std::to_string(part.shard.count);
    if (part.shard.count != count || part.shard.index < 0 || part.shard.index >= count)
      return wrong_parts("part " + name + " does not belong to a search of " + std::to_string(count) + " parts", "merge the parts of one search");
    auto& place = by_index[static_cast<std::size_t>(part.shard.index)];
    if (place != nullptr) return wrong_parts("part " + name + " is there twice", "name every part once");
    place = &part;
    if (part.end != SearchEnd::complete)
      return wrong_parts("part " + name + " ended early (" + std::string(to_text(part.end)) + ")", "run that part again without a limit");
    if (part.exhaustive != search::prices_everything(options))
      return wrong_parts("part " + name + " was searched with other options", "merge with the options of the parts");
  }
  std::vector<SearchPartial> ordered;
  for (std::size_t i = 0; i < by_index.size(); ++i) {
    if (by_index[i] == nullptr)
      return wrong_parts("part " + std::to_string(i + 1) + "/" + std::to_string(count) + " is missing", "merge all parts of the search");
    ordered.push_back(*by_index[i]);
  }
  SearchResult out = assemble(search_scenario(scenario, space, options), options, std::move(ordered));
  if (options.on_ranked)
    for (const auto& candidate : out.ranking) options.on_ranked(candidate);
  return out;
}

}  // namespace nd
