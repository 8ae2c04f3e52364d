// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nd/search.hpp"
#include "search/near_misses.hpp"
#include "search/ranking.hpp"
#include "search/ranking_store.hpp"

namespace nd::search {

/// What is kept of the strategies that are priced.
struct TallyRules {
  RankOrder order;
  std::size_t keep = 20;  ///< of the ranking; 0 = all
  std::size_t near_misses = 5;
  bool pareto = false;
  RankingStore* store = nullptr;  ///< where the whole ranking goes; null: nowhere
};

/// What one worker found. Tallies of several workers add up to the same whatever each of them saw.
class Tally {
 public:
  explicit Tally(const TallyRules& rules)
      : ranking(rules.order, rules.keep), misses(rules.near_misses), rules_(rules) {}

  void fits(const RankedCandidate& candidate) {
    ++priced;
    ranking.add(candidate);
    if (rules_.pareto) front.add(candidate);
    if (rules_.store == nullptr) return;
    run_.push_back(candidate);
    if (run_.size() >= RankingStore::kRun) hand_over();
  }
  /// What has not been stored yet goes to the store.
  void hand_over() {
    if (rules_.store != nullptr) rules_.store->add(run_);
  }
  void too_large(const ParallelConfig& config, std::int64_t place) {
    ++out_of_memory;
    first_out_of_memory.offer(config, place);
  }
  void costs_the_same(const ParallelConfig& config, std::int64_t place) {
    ++equivalent;
    first_equivalent.offer(config, place);
  }

  /// The strategy that comes first in the space.
  struct First {
    ParallelConfig config;
    std::int64_t place = -1;
    void offer(const ParallelConfig& other, std::int64_t at) {
      if (place >= 0 && place <= at) return;
      config = other;
      place = at;
    }
  };

  std::int64_t priced = 0, pruned = 0, out_of_memory = 0, equivalent = 0;
  First first_out_of_memory, first_equivalent;
  Ranking ranking;
  NearMisses misses;
  ParetoFront front;

 private:
  TallyRules rules_;
  std::vector<RankedCandidate> run_;
};

}  // namespace nd::search
