// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "nd/compare.hpp"
#include "nd/search.hpp"
#include "search/ranking.hpp"

namespace nd {

void calibrate(PricedCandidate& candidate, const PriceFactors& factors) {
  const double before = candidate.time.step.value;
  scale(candidate.time, factors);
  const double faster = candidate.time.step.value > 0 ? before / candidate.time.step.value : 1.0;
  candidate.tokens_per_second *= faster;
  candidate.flops_per_second *= faster;
  if (candidate.mfu) *candidate.mfu *= faster;
}

SearchResult calibrated_search(const Scenario& scenario, const SearchSpace& space, SearchOptions options, const PriceFactors& factors) {
  constexpr std::size_t kBlock = 4096;  // candidates priced in detail at once: bounds the memory of a long ranking
  options.keep_all = true;              // what is best before the calibration need not be best after it
  SearchResult result = search_strategies(scenario, space, options);
  const Scenario priced = search_scenario(scenario, space, options);
  std::vector<ParallelConfig> block;
  for (std::size_t begin = 0; begin < result.ranking.size(); begin += kBlock) {
    const std::size_t end = std::min(result.ranking.size(), begin + kBlock);
    block.clear();
    for (std::size_t i = begin; i < end; ++i) block.push_back(result.ranking[i].config);
    auto candidates = price_strategies(priced, block, options.jobs);
    for (std::size_t i = begin; i < end; ++i) {
      calibrate(candidates[i - begin], factors);
      result.ranking[i].step = candidates[i - begin].time.step;
    }
  }
  std::sort(result.ranking.begin(), result.ranking.end(), search::RankOrder(options.objective));
  const auto shown = std::min(result.ranking.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, options.top)));
  block.clear();
  for (std::size_t i = 0; i < shown; ++i) block.push_back(result.ranking[i].config);
  result.candidates = price_strategies(priced, block, options.jobs);
  for (std::size_t i = 0; i < shown; ++i) {
    calibrate(result.candidates[i], factors);
    result.candidates[i].rank = static_cast<std::int64_t>(i) + 1;
  }
  return result;
}

}  // namespace nd
