// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "nd/memory.hpp"
#include "nd/parallel_config.hpp"
#include "nd/perf.hpp"
#include "nd/plan.hpp"
#include "nd/scenario.hpp"
#include "nd/search_space.hpp"

namespace nd {

/// What the ranking is ordered by. Cost and energy are the step time in other units (all devices work all through a step):
/// they change what is shown, not the order.
enum class Objective : std::uint8_t { time, memory, cost, energy };
[[nodiscard]] std::string_view to_text(Objective objective);  ///< "time", ...
[[nodiscard]] Result<Objective> parse_objective(std::string_view text, const SourceRef& where);

/// One of `count` disjoint parts of the space: the groups of candidates whose index modulo `count` is `index`.
struct Shard {
  std::int64_t index = 0, count = 1;  ///< from 0
  friend bool operator==(const Shard&, const Shard&) = default;
};

struct RankedCandidate;

/// What runs the workers. `tbb` needs a build with ND_USE_TBB; without, `threads` does its work.
enum class Backend : std::uint8_t { threads, tbb };

/// Plain value type; check_search_options() says what is wrong with one.
struct SearchOptions {
  int jobs = 0;              ///< workers; 0 = as many as the machine has cores. Never changes a result
  std::optional<Backend> backend;  ///< what runs the workers; absent = what this build prefers. Never changes a result
  std::int64_t top = 20;     ///< candidates with all details
  bool keep_all = false;     ///< keep the whole ranking, not only `top`: implies exhaustive
  /// Price everything. Without, strategies that provably are not among the best `top` are counted as `pruned`, unpriced; the
  /// best `top` are the same.
  bool exhaustive = false;
  std::int64_t near_misses = 5;  ///< candidates that nearly fit
  std::optional<Bytes> memory_limit;  ///< budget instead of the run's or the device's
  Bytes memory_reserve{};    ///< taken off the budget afterwards
  Objective objective = Objective::time;  ///< memory: exhaustive
  bool pareto = false;       ///< find the front of time against memory as well: exhaustive
  std::optional<double> device_hour_price;  ///< for cost; absent = the device's own figure
  double tie_band = 0;       ///< relative error of a step time (step_time_band()): passed on as SearchResult::band
  Shard shard;
  std::optional<Seconds> time_limit;  ///< wall clock; what was found by then is returned, marked
  std::stop_token stop;      ///< when stop is requested, the same
  /// Called now and then, on the calling thread, with the number of legal strategies done so far; may be empty.
  std::function<void(std::int64_t priced)> progress;
  /// When set, receives the whole ranking, best first, on the calling thread after the search; the ranking then goes through
  /// temporary files and never is in memory as a whole. Implies exhaustive; keep_all is not needed.
  std::function<void(const RankedCandidate&)> on_ranked;
};

/// A strategy that fits, as the ranking orders it: by step (memory: peak first), peak, dimensions in use, config. Steps that
/// agree to 2^-30 (about 1e-9) are equal.
struct RankedCandidate {
  ParallelConfig config;
  Seconds step{};
  Bytes peak{};  ///< what decides: StageMemory::reserved of the peak stage
  Fit fit = Fit::yes;
  friend bool operator==(const RankedCandidate&, const RankedCandidate&) = default;
};

/// A strategy with everything that is known about it.
struct PricedCandidate {
  std::int64_t rank = 0;  ///< from 1; 0 = not ranked
  ParallelConfig config;
  MemoryBreakdown memory;
  TimeBreakdown time;
  double tokens_per_second = 0;   ///< per device
  double flops_per_second = 0;    ///< model FLOP/s per device: no recompute, causal attention counted as half the square
  std::optional<double> mfu;      ///< flops_per_second / dense peak of the compute type; absent when the device states none
  std::vector<std::vector<std::int64_t>> layers;  ///< [stage][chunk] body layers
  std::optional<LayerPlan> plan;      ///< of Recompute::per_layer
};

/// A legal strategy that does not fit. `change` is looked for among: more recompute, sharding, smaller micro-batches, more
/// tp / pp / cp / ep on the same devices, more devices.
struct NearMiss {
  ParallelConfig config;
  MemoryBreakdown memory;
  Bytes lacks{};                  ///< peak - budget
  std::string_view largest_part;  ///< of the peak stage
  Bytes largest{};
  std::string change;             ///< cheapest single change that makes it fit; empty when none was found
};

/// Wall-clock seconds of the phases. The only part of a result that differs between runs.
struct SearchPhases {
  Seconds enumerate{}, price{}, rank{}, detail{};
};

/// enumerated = priced + pruned + sum of `rejected`; legal = priced + pruned + rejected[out_of_memory] + rejected[equivalent].
/// `priced` and `fitting` are the strategies that fit and have a price of their own. Without SearchOptions::exhaustive they and
/// rejected[out_of_memory] leave out what was pruned, whether it would have fitted or not. None depends on jobs; those of shards
/// add up.
struct SearchStats {
  std::int64_t enumerated = 0, legal = 0, priced = 0, pruned = 0, fitting = 0;
  std::array<std::int64_t, kRejectionCount> rejected{};
  std::array<std::optional<ParallelConfig>, kRejectionCount> example{};  ///< the first in the order of the space
  SearchPhases phases;
  int jobs = 1;  ///< workers used
};

/// Why a search ended before it had seen everything.
enum class SearchEnd : std::uint8_t { complete, time_limit, stopped };
[[nodiscard]] std::string_view to_text(SearchEnd end);  ///< "complete", "time_limit", "stopped"

struct SearchResult {
  std::vector<PricedCandidate> candidates;  ///< best first, at most `top`
  std::vector<RankedCandidate> ranking;     ///< best first; all that fit with keep_all, else as many as `candidates`
  std::vector<NearMiss> near_misses;        ///< closest first, one per (dp, tp, pp, cp, ep), of what was not pruned
  std::vector<PricedCandidate> pareto;      ///< fastest first: nothing else is both faster and smaller
  Bytes budget{};                           ///< per device, limit and reserve applied
  double band = 0;                          ///< SearchOptions::tie_band; candidates closer than this are a tie
  SearchStats stats;
  SearchEnd end = SearchEnd::complete;      ///< else the best of what was seen
  bool exhaustive = true;                   ///< nothing was pruned
};

/// What one shard found, before details: what the partial file of --shard holds. Plain value type.
struct SearchPartial {
  Shard shard;
  SearchStats stats;
  std::array<std::int64_t, kRejectionCount> example_at{};  ///< where in the space stats.example is; of several parts the first counts
  SearchEnd end = SearchEnd::complete;
  bool exhaustive = true;
  std::vector<RankedCandidate> ranking;  ///< the shard's best, best first
  std::vector<RankedCandidate> front;    ///< the shard's front of time against memory, fastest first
  struct Miss {
    ParallelConfig config;
    Bytes peak{};
    friend bool operator==(const Miss&, const Miss&) = default;
  };
  std::vector<Miss> misses;              ///< closest to fitting, one per (dp, tp, pp, cp, ep), closest first
};

/// What is wrong with `options` for this scenario: cost without a price, energy without a device power, a shard out of range.
/// A search with problems may be run; the objective's unit is what is missing.
[[nodiscard]] std::vector<Diagnostic> check_search_options(const Scenario& scenario, const SearchOptions& options);

/// The objective's figure for one second of a step of all devices: [currency of the price] for cost, [J] for energy, 1 [s] for
/// time. nullopt where it is not known and for memory.
[[nodiscard]] std::optional<double> objective_per_second(const Scenario& scenario, const SearchOptions& options);

/// The scenario as the search prices it: budget set, per-layer lists that belong to the stated strategy dropped when the
/// space varies what they depend on.
[[nodiscard]] Scenario search_scenario(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options);

/// Enumerates the legal strategies of `space`, refuses those that do not fit, predicts the step time of the rest and ranks
/// them. The result does not depend on `jobs`. An empty ranking is a result, not an error. Thread-safe.
/// With a shard: the result of that part alone.
[[nodiscard]] SearchResult search_strategies(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options);

/// The same up to the details. on_ranked is not called.
[[nodiscard]] SearchPartial search_shard(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options);
/// What search_strategies returns for the whole space, from the partial results of all its shards, in any order; `options` as for
/// the unsharded search. Refuses missing, repeated and differently split parts, and parts that end early.
[[nodiscard]] Result<SearchResult> merge_shards(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options,
                                                std::span<const SearchPartial> parts);

/// Dimensions with a value that does something: degrees above 1, switches that are on. Micro-batches do not count.
[[nodiscard]] int dimensions_in_use(const ParallelConfig& config);

/// Full price of one strategy, whether it fits or not. Precondition: legal.
[[nodiscard]] PricedCandidate price_strategy(const Scenario& scenario, const ParallelConfig& config);
/// The same for many, in their order, on `jobs` workers.
[[nodiscard]] std::vector<PricedCandidate> price_strategies(const Scenario& scenario, std::span<const ParallelConfig> configs, int jobs);

}  // namespace nd
