// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "search/group_pricer.hpp"
#include "search/halt.hpp"

namespace nd::search {

/// How a search of these options treats candidates.
[[nodiscard]] TallyRules tally_rules(const SearchOptions& options);
/// Whether every strategy is to be priced.
[[nodiscard]] bool prices_everything(const SearchOptions& options);

/// Seconds between calls.
class StopWatch {
 public:
  Seconds lap() {
    const auto now = Clock::now();
    const Seconds out{std::chrono::duration<double>(now - start_).count()};
    start_ = now;
    return out;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// One search of one shard. With pruning it goes over the space twice. First every group is bounded, and the groups are priced
/// in the order of their bounds until the best `top` of what was seen cannot be beaten, or enough was tried: that gives one
/// threshold, which does not depend on workers or shards. Then the groups of the shard that the threshold leaves are priced.
/// The scenario is the one of search_scenario() and must outlive it.
class SpaceSearch {
 public:
  SpaceSearch(const Scenario& scenario, const SearchOptions& options);
  [[nodiscard]] SearchPartial run(const SearchSpace& space);
  /// After run() with on_ranked: calls it for every strategy that fits, best first.
  void stream_ranking() { store_.for_each(options_.on_ranked); }

 private:
  struct BoundedGroup {
    space::CandidateGroup group;
    double bound = 0;
  };

  void sweep_everything(space::GroupSpace& groups);
  void sweep_promising(space::GroupSpace& groups);
  void bound_groups(std::vector<BoundedGroup>& groups, std::size_t first);
  /// The threshold: a tie_value of seconds.
  [[nodiscard]] double probe(std::vector<BoundedGroup>& groups);
  void price(const std::vector<space::CandidateGroup>& groups, double slowest);
  void for_groups(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body);
  [[nodiscard]] GroupPricer& worker(std::size_t index);
  [[nodiscard]] bool mine(const space::CandidateGroup& group) const {
    return group.index % options_.shard.count == options_.shard.index;
  }
  void count_rules(const space::SpaceCounts& counts);
  void collect();

  const Scenario& scenario_;
  const SearchOptions& options_;
  TallyRules rules_;
  RankingStore store_;
  Halt halt_;
  std::vector<std::unique_ptr<GroupPricer>> workers_;
  std::vector<RankedCandidate> probed_;  ///< what the probe found, for a search that ends early
  SearchPartial out_;
  StopWatch watch_;
  std::int64_t done_ = 0;
};

}  // namespace nd::search
