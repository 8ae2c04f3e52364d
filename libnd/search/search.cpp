// SPDX-License-Identifier: Apache-2.0
#include "nd/search.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "memory/fit_test.hpp"
#include "search/near_misses.hpp"
#include "search/parallel.hpp"
#include "search/pricer.hpp"
#include "search/ranking.hpp"
#include "space/enumerate.hpp"

namespace nd {

namespace {

using Clock = std::chrono::steady_clock;

/// Legal strategies gathered before they are priced together: bounds memory, and is far above what start-up of the workers costs.
constexpr std::size_t kBatch = std::size_t{1} << 16U;
/// Strategies a worker takes at once: neighbours share their degrees, and with them the cached factors.
constexpr std::size_t kGrain = 256;
/// Relative error of a step time below which two candidates are a tie: the median error of the time model on measured runs
/// (docs/accuracy.md) [measured].
constexpr double kStepTimeBand = 0.06;

/// What pricing found out about one strategy.
struct Slot {
  Bytes peak{};
  Seconds step{};
  Fit fit = Fit::no;
};

class StopWatch {
 public:
  /// Seconds since the last call.
  Seconds lap() {
    const auto now = Clock::now();
    const Seconds out{std::chrono::duration<double>(now - start_).count()};
    start_ = now;
    return out;
  }

 private:
  Clock::time_point start_ = Clock::now();
};

/// One run of the search over one scenario.
class Search {
 public:
  Search(const Scenario& scenario, const SearchOptions& options)
      : scenario_(scenario),
        options_(options),
        ranking_(options.keep_all ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(1, options.top))),
        pricers_(search::worker_count(options.jobs)) {
    batch_.reserve(kBatch);
  }

  SearchResult run(const SearchSpace& space) {
    const space::SpaceContext context(scenario_);
    const auto counts = space::enumerate(context, space, [this](const ParallelConfig& config) {
      batch_.push_back(config);
      if (batch_.size() == kBatch) price_batch();
      return true;
    });
    price_batch();
    auto& stats = result_.stats;
    stats.enumerated = counts.enumerated;
    stats.legal = counts.legal;
    for (std::size_t i = 0; i < kRejectionCount; ++i) {
      stats.rejected[i] += counts.rejected[i];
      if (!stats.example[i]) stats.example[i] = counts.example[i];
    }
    stats.jobs = static_cast<int>(pricers_.size());
    result_.band = kStepTimeBand;
    finish();
    return std::move(result_);
  }

 private:
  void price_batch() {
    result_.stats.phases.enumerate += watch_.lap();
    slots_.assign(batch_.size(), Slot{});
    search::parallel_for_index(batch_.size(), {.grain = kGrain, .jobs = options_.jobs, .stop = {}},
                               [this](const search::LoopChunk& chunk) {
                                 auto& pricer = pricers_[chunk.worker];
                                 if (!pricer) pricer = std::make_unique<search::Pricer>(scenario_);
                                 for (std::size_t i = chunk.begin; i < chunk.end; ++i) slots_[i] = price(*pricer, batch_[i]);
                               });
    result_.stats.phases.price += watch_.lap();
    for (std::size_t i = 0; i < batch_.size(); ++i) collect(batch_[i], slots_[i]);
    done_ += static_cast<std::int64_t>(batch_.size());
    if (options_.progress) options_.progress(done_);
    batch_.clear();
    result_.stats.phases.rank += watch_.lap();
  }

  static Slot price(search::Pricer& pricer, const ParallelConfig& config) {
    const auto& memory = pricer.memory(config);
    Slot slot{memory.peak().reserved, {}, memory.fit};
    if (slot.fit != Fit::no) slot.step = pricer.time(config).step;
    return slot;
  }

  void collect(const ParallelConfig& config, const Slot& slot) {
    auto& stats = result_.stats;
    if (slot.fit == Fit::no) {
      const auto index = static_cast<std::size_t>(Rejection::out_of_memory);
      ++stats.rejected[index];
      if (!stats.example[index]) stats.example[index] = config;
      misses_.add(config, slot.peak);
      return;
    }
    ++stats.priced;
    ++stats.fitting;
    ranking_.add({config, slot.step, slot.peak, slot.fit});
  }

  void finish() {
    watch_.lap();
    result_.ranking = ranking_.take();
    result_.stats.phases.rank += watch_.lap();
    const auto shown = std::min(result_.ranking.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, options_.top)));
    std::vector<ParallelConfig> best;
    for (std::size_t i = 0; i < shown; ++i) best.push_back(result_.ranking[i].config);
    result_.candidates = price_strategies(scenario_, best, 1);
    for (std::size_t i = 0; i < shown; ++i) result_.candidates[i].rank = static_cast<std::int64_t>(i) + 1;
    result_.near_misses = misses_.take(scenario_, static_cast<std::size_t>(std::max<std::int64_t>(0, options_.near_misses)));
    if (!result_.candidates.empty()) result_.budget = result_.candidates.front().memory.budget;
    else if (!result_.near_misses.empty()) result_.budget = result_.near_misses.front().memory.budget;
    result_.stats.phases.detail += watch_.lap();
  }

  const Scenario& scenario_;
  const SearchOptions& options_;
  search::Ranking ranking_;
  search::NearMisses misses_;
  std::vector<std::unique_ptr<search::Pricer>> pricers_;
  std::vector<ParallelConfig> batch_;
  std::vector<Slot> slots_;
  std::int64_t done_ = 0;
  SearchResult result_;
  StopWatch watch_;
};

}  // namespace

Scenario search_scenario(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options) {
  Scenario out = scenario;
  if (options.memory_limit) out.run.device_memory = *options.memory_limit;
  // The lists name the layers of the stated strategy; a search over modes gives every layer the candidate's mode.
  if (!space.of(Dimension::recompute).pinned) {
    out.run.full_recompute_layers.clear();
    out.run.selective_recompute_layers.clear();
  }
  // A reserve of the whole budget leaves one byte: nothing fits, while 0 would mean "not stated".
  if (options.memory_reserve.value > 0)
    out.run.device_memory = std::max(memory::memory_budget(out) - options.memory_reserve, Bytes{1});
  return out;
}

SearchResult search_strategies(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options) {
  const Scenario priced = search_scenario(scenario, space, options);
  return Search(priced, options).run(space);
}

}  // namespace nd
