// SPDX-License-Identifier: Apache-2.0
#include "search/group_pricer.hpp"

#include <algorithm>
#include <limits>

namespace nd::search {

namespace {

constexpr std::int64_t kMostMembers = std::int64_t{1} << 20U;  ///< of one group; far above what the dimensions allow

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

}  // namespace

bool GroupPricer::met(Seconds step, Bytes peak) {
  const std::pair price{step.value, peak.value};
  if (std::find(prices_.begin(), prices_.end(), price) != prices_.end()) return true;
  prices_.push_back(price);
  return false;
}

void GroupPricer::price(const space::CandidateGroup& group, double slowest) {
  RankedCandidate candidate;
  candidate.config = group.head;
  std::int64_t place = group.index * kMostMembers;
  for (const auto& pipeline : group.pipelines->legal) {
    space::CandidateGroup::choose(candidate.config, pipeline);
    prices_.clear();
    for (const auto& shards : group.shards->legal) {
      space::CandidateGroup::choose(candidate.config, shards);
      ++place;
      const Bytes bound = pricer_.memory_bound(candidate.config);
      const bool too_large = bound > pricer_.budget();
      if (too_large && !tally_.misses.wants(bound)) {
        tally_.too_large(candidate.config, place);
        continue;
      }
      // A plan costs far more than its bound. What is known not to fit is never pruned: which misses a worker wants is its own affair.
      if (!too_large && candidate.config.recompute == Recompute::per_layer && slowest < kUnlimited &&
          tie_value(pricer_.at_least_unplanned(candidate.config).value) > slowest) {
        ++tally_.pruned;
        continue;
      }
      const auto memory = pricer_.peak(candidate.config);
      candidate.peak = memory.reserved;
      candidate.fit = memory.fit;
      if (candidate.fit == Fit::no) {
        tally_.too_large(candidate.config, place);
        tally_.misses.add(candidate.config, candidate.peak);
        continue;
      }
      if (slowest < kUnlimited && tie_value(pricer_.at_least(candidate.config).value) > slowest) {
        ++tally_.pruned;
        continue;
      }
      candidate.step = pricer_.step(candidate.config);
      // Members come in the order of what they use: the first of those that cost the same is the simplest.
      if (met(candidate.step, candidate.peak)) tally_.costs_the_same(candidate.config, place);
      else tally_.fits(candidate);
    }
  }
}

}  // namespace nd::search
