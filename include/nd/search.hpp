// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nd/memory.hpp"
#include "nd/parallel_config.hpp"
#include "nd/perf.hpp"
#include "nd/scenario.hpp"
#include "nd/search_space.hpp"

namespace nd {

struct SearchOptions {
  int jobs = 0;              ///< workers; 0 = as many as the machine has cores. Never changes a result
  std::int64_t top = 20;     ///< candidates with all details
  bool keep_all = false;     ///< keep the whole ranking, not only `top`
  std::int64_t near_misses = 5;  ///< candidates that nearly fit
  std::optional<Bytes> memory_limit;  ///< budget instead of the run's or the device's
  Bytes memory_reserve{};    ///< taken off the budget afterwards
  /// Called now and then, on the calling thread, with the number of legal strategies priced so far; may be empty.
  std::function<void(std::int64_t priced)> progress;
};

/// A strategy that fits, as the ranking orders it: (step, peak, config).
struct RankedCandidate {
  ParallelConfig config;
  Seconds step{};
  Bytes peak{};  ///< what decides: StageMemory::reserved of the peak stage
  Fit fit = Fit::yes;
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
};

/// A legal strategy that does not fit.
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

/// enumerated = priced + pruned + sum of `rejected`; legal = priced + pruned + rejected[out_of_memory].
struct SearchStats {
  std::int64_t enumerated = 0, legal = 0, priced = 0, pruned = 0, fitting = 0;
  std::array<std::int64_t, kRejectionCount> rejected{};
  std::array<std::optional<ParallelConfig>, kRejectionCount> example{};
  SearchPhases phases;
  int jobs = 1;  ///< workers used
};

struct SearchResult {
  std::vector<PricedCandidate> candidates;  ///< best first, at most `top`
  std::vector<RankedCandidate> ranking;     ///< best first; all that fit with keep_all, else as many as `candidates`
  std::vector<NearMiss> near_misses;        ///< closest first, one per (dp, tp, pp, cp, ep)
  Bytes budget{};                           ///< per device, limit and reserve applied
  double band = 0;                          ///< relative error of a step time; candidates closer than this are a tie
  SearchStats stats;
};

/// The scenario as the search prices it: budget set, per-layer lists that belong to the stated strategy dropped when the
/// space varies what they depend on.
[[nodiscard]] Scenario search_scenario(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options);

/// Enumerates the legal strategies of `space`, refuses those that do not fit, predicts the step time of the rest and ranks
/// them. The result does not depend on `jobs`. An empty ranking is a result, not an error. Thread-safe.
[[nodiscard]] SearchResult search_strategies(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options);

/// Full price of one strategy, whether it fits or not. Precondition: legal.
[[nodiscard]] PricedCandidate price_strategy(const Scenario& scenario, const ParallelConfig& config);
/// The same for many, in their order, on `jobs` workers.
[[nodiscard]] std::vector<PricedCandidate> price_strategies(const Scenario& scenario, std::span<const ParallelConfig> configs, int jobs);

}  // namespace nd
