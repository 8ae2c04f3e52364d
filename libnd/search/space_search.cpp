// SPDX-License-Identifier: Apache-2.0
#include "search/space_search.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "search/parallel.hpp"

namespace nd::search {

namespace {

/// Groups gathered before they are priced together: bounds memory, and is far above what start-up of the workers costs.
constexpr std::size_t kSegment = std::size_t{1} << 14U;
/// Groups a worker takes at once: neighbours share their degrees, and with them the cached factors.
constexpr std::size_t kGrain = 16;
/// Groups the probe prices between two looks at the threshold; fixed, so that the result does not depend on the workers.
constexpr std::size_t kWave = 64;
/// Strategies after which the probe takes what it has.
constexpr std::int64_t kMostProbed = 2'000'000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t to_size(std::int64_t count) { return static_cast<std::size_t>(std::max<std::int64_t>(0, count)); }

}  // namespace

bool prices_everything(const SearchOptions& options) {
  return options.exhaustive || options.keep_all || options.pareto || options.on_ranked || options.objective == Objective::memory;
}

TallyRules tally_rules(const SearchOptions& options) {
  return {.order = RankOrder(options.objective),
          .keep = options.keep_all ? 0 : std::max<std::size_t>(1, to_size(options.top)),
          .near_misses = to_size(options.near_misses),
          .pareto = options.pareto,
          .store = nullptr};
}

SpaceSearch::SpaceSearch(const Scenario& scenario, const SearchOptions& options)
    : scenario_(scenario),
      options_(options),
      rules_(tally_rules(options)),
      store_(rules_.order),
      halt_(options),
      workers_(worker_count(options.jobs)) {
  if (options.on_ranked) rules_.store = &store_;
  out_.shard = options.shard;
  out_.exhaustive = prices_everything(options);
}

SearchPartial SpaceSearch::run(const SearchSpace& space) {
  const space::SpaceContext context(scenario_);
  space::GroupSpace groups(context, space);
  if (out_.exhaustive) sweep_everything(groups);
  else sweep_promising(groups);
  collect();
  return std::move(out_);
}

GroupPricer& SpaceSearch::worker(std::size_t index) {
  auto& pricer = workers_[index];
  if (!pricer) pricer = std::make_unique<GroupPricer>(scenario_, rules_);
  return *pricer;
}

void SpaceSearch::for_groups(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body) {
  const Backend backend = options_.backend && has_backend(*options_.backend) ? *options_.backend : default_backend();
  parallel_for_index(count, {.grain = kGrain, .jobs = options_.jobs, .stop = {}, .backend = backend}, [&](const LoopChunk& chunk) {
    for (std::size_t i = chunk.begin; i < chunk.end && !halt_.now(); ++i) body(i, chunk.worker);
  });
}

void SpaceSearch::price(const std::vector<space::CandidateGroup>& groups, double slowest) {
  out_.stats.phases.enumerate += watch_.lap();
  for_groups(groups.size(), [&](std::size_t i, std::size_t worker_index) { worker(worker_index).price(groups[i], slowest); });
  for (const auto& group : groups) done_ += group.size();
  if (options_.progress) options_.progress(done_);
  out_.stats.phases.price += watch_.lap();
}

void SpaceSearch::sweep_everything(space::GroupSpace& groups) {
  std::vector<space::CandidateGroup> segment;
  segment.reserve(kSegment);
  const auto counts = groups.visit([&](const space::CandidateGroup& group) {
    if (mine(group)) segment.push_back(group);
    if (segment.size() < kSegment) return true;
    price(segment, kInfinity);
    segment.clear();
    return !halt_.now();
  });
  price(segment, kInfinity);
  count_rules(counts);
}

void SpaceSearch::bound_groups(std::vector<BoundedGroup>& groups, std::size_t first) {
  for_groups(groups.size() - first, [&](std::size_t i, std::size_t worker_index) {
    auto& entry = groups[first + i];
    entry.bound = worker(worker_index).time_bound(entry.group);
  });
}

double SpaceSearch::probe(std::vector<BoundedGroup>& groups) {
  std::sort(groups.begin(), groups.end(), [](const BoundedGroup& a, const BoundedGroup& b) {
    return std::tie(a.bound, a.group.index) < std::tie(b.bound, b.group.index);
  });
  // Its own pricers: what it finds is no part of the counts.
  std::vector<std::unique_ptr<GroupPricer>> pricers(workers_.size());
  double slowest = kInfinity;
  std::int64_t tried = 0;
  for (std::size_t begin = 0; begin < groups.size() && tried < kMostProbed && !halt_.now(); begin += kWave) {
    if (tie_value(groups[begin].bound) > slowest) break;
    const std::size_t count = std::min(kWave, groups.size() - begin);
    for_groups(count, [&, slowest](std::size_t i, std::size_t worker_index) {
      if (tie_value(groups[begin + i].bound) > slowest) return;
      auto& pricer = pricers[worker_index];
      if (!pricer) pricer = std::make_unique<GroupPricer>(scenario_, rules_);
      pricer->price(groups[begin + i].group, slowest);
    });
    for (std::size_t i = 0; i < count; ++i) tried += groups[begin + i].group.size();
    std::vector<std::vector<RankedCandidate>> parts{std::move(probed_)};
    for (auto& pricer : pricers)
      if (pricer) parts.push_back(pricer->tally().ranking.take());
    probed_ = merge_rankings(rules_.order, rules_.keep, std::move(parts));
    if (probed_.size() == rules_.keep) slowest = tie_value(probed_.back().step.value);
  }
  return slowest;
}

void SpaceSearch::sweep_promising(space::GroupSpace& groups) {
  std::vector<BoundedGroup> all;
  std::size_t bounded = 0;
  const auto counts = groups.visit([&](const space::CandidateGroup& group) {
    all.push_back({group, 0});
    if (all.size() - bounded < kSegment) return true;
    bound_groups(all, bounded);
    bounded = all.size();
    return !halt_.now();
  });
  bound_groups(all, bounded);
  count_rules(counts);
  out_.stats.phases.enumerate += watch_.lap();
  if (halt_.now()) return;
  const double slowest = probe(all);
  out_.stats.phases.price += watch_.lap();
  std::vector<space::CandidateGroup> promising;
  for (const auto& entry : all) {
    if (!mine(entry.group)) continue;
    if (tie_value(entry.bound) > slowest) out_.stats.pruned += entry.group.size();
    else promising.push_back(entry.group);
  }
  done_ += out_.stats.pruned;
  std::sort(promising.begin(), promising.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  price(promising, slowest);
}

// What the rules refuse is found by every shard; the first one counts it.
void SpaceSearch::count_rules(const space::SpaceCounts& counts) {
  if (options_.shard.index != 0) return;
  for (std::size_t i = 0; i < kRejectionCount; ++i) {
    out_.stats.rejected[i] = counts.rejected[i];
    out_.stats.example[i] = counts.example[i];
  }
}

void SpaceSearch::collect() {
  auto& stats = out_.stats;
  Tally::First out_of_memory, equivalent;
  NearMisses misses(rules_.near_misses);
  ParetoFront front;
  std::vector<std::vector<RankedCandidate>> rankings;
  for (auto& pricer : workers_) {
    if (!pricer) continue;
    Tally& tally = pricer->tally();
    stats.priced += tally.priced;
    stats.pruned += tally.pruned;
    stats.rejected[static_cast<std::size_t>(Rejection::out_of_memory)] += tally.out_of_memory;
    stats.rejected[static_cast<std::size_t>(Rejection::equivalent)] += tally.equivalent;
    if (tally.first_out_of_memory.place >= 0) out_of_memory.offer(tally.first_out_of_memory.config, tally.first_out_of_memory.place);
    if (tally.first_equivalent.place >= 0) equivalent.offer(tally.first_equivalent.config, tally.first_equivalent.place);
    for (const auto& miss : tally.misses.closest()) misses.add(miss.config, miss.peak);
    for (const auto& candidate : tally.front.front()) front.add(candidate);
    rankings.push_back(tally.ranking.take());
    tally.hand_over();
  }
  const auto example = [&](Rejection reason, const Tally::First& first) {
    if (first.place < 0) return;
    stats.example[static_cast<std::size_t>(reason)] = first.config;
    out_.example_at[static_cast<std::size_t>(reason)] = first.place;
  };
  example(Rejection::out_of_memory, out_of_memory);
  example(Rejection::equivalent, equivalent);
  out_.end = halt_.end();
  if (out_.end != SearchEnd::complete) rankings.push_back(std::move(probed_));
  out_.ranking = merge_rankings(rules_.order, rules_.keep, std::move(rankings));
  out_.front = front.front();
  out_.misses = misses.closest();
  stats.fitting = stats.priced;
  stats.legal = stats.priced + stats.pruned + stats.rejected[static_cast<std::size_t>(Rejection::out_of_memory)] +
                stats.rejected[static_cast<std::size_t>(Rejection::equivalent)];
  stats.enumerated = stats.priced + stats.pruned;
  for (const auto count : stats.rejected) stats.enumerated += count;
  stats.jobs = static_cast<int>(workers_.size());
  stats.phases.rank += watch_.lap();
}

}  // namespace nd::search
