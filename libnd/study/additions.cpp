// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "nd/study.hpp"

namespace nd {

namespace {

/// "Uses the dimension": a degree above 1. Switches and choices do not qualify.
bool uses(const ParallelConfig& config, Dimension dimension) {
  switch (dimension) {
    case Dimension::sequence_parallel:
    case Dimension::schedule:
    case Dimension::zero:
    case Dimension::recompute: return false;
    default: return value_of(config, dimension) > 1;
  }
}

}  // namespace

std::vector<std::size_t> additional_candidates(const std::vector<RankedCandidate>& ranking, std::size_t top, const AdditionRule& rule) {
  std::vector<bool> chosen(ranking.size(), false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(std::min(top, ranking.size())), true);
  const std::vector<bool> shown = chosen;
  for (const auto dimension : rule.dimensions) {
    std::int64_t wanted = rule.own;
    if (rule.own == 0) {
      std::int64_t present = 0;
      for (std::size_t i = 0; i < ranking.size(); ++i) present += shown[i] && uses(ranking[i].config, dimension) ? 1 : 0;
      wanted = rule.always >= rule.in_all ? rule.always : std::max(rule.always, rule.in_all - present);
    }
    for (std::size_t i = 0; i < ranking.size() && wanted > 0; ++i) {
      // With `own` a candidate counts for one dimension only.
      if (!uses(ranking[i].config, dimension) || (rule.own > 0 ? chosen[i] : shown[i])) continue;
      chosen[i] = true;
      --wanted;
    }
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < ranking.size(); ++i)
    if (chosen[i] && !shown[i]) out.push_back(i);
  return out;
}

}  // namespace nd
