// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nd/search.hpp"

// Questions above one search: what the search gains over what people would have run, what changes when one thing changes, how
// large a cluster has to be.
namespace nd {

/// A strategy that would be taken without a search, priced beside the winner.
struct Baseline {
  enum class Kind : std::uint8_t {
    stated,         ///< what the input itself states
    data_parallel,  ///< replicas only, with the sharding, micro-batch and recompute that suit them best
  };
  Kind kind = Kind::stated;
  std::optional<PricedCandidate> priced;  ///< absent: it cannot run
  std::string problem;                    ///< why it cannot run
  Bytes lacks{};                          ///< peak - budget where it does not fit, else 0
  std::string_view largest_part;          ///< of the peak stage
  Bytes largest{};
  [[nodiscard]] bool fits() const { return priced && priced->memory.fit != Fit::no; }
};
/// "stated", "data_parallel".
[[nodiscard]] std::string_view to_text(Baseline::Kind kind);

/// The scenario in which the strategy that the source states is priced: budget set, with the source's own lists of recomputed layers.
[[nodiscard]] Scenario stated_scenario(const Scenario& scenario, const SearchOptions& options);
/// The strategy of `scenario.run` with its own lists of recomputed layers. Precondition: legal.
[[nodiscard]] Baseline stated_baseline(const Scenario& scenario, const SearchOptions& options);
/// The fastest strategy with tp = pp = cp = ep = 1 that fits; where none does, the one that lacks least.
[[nodiscard]] Baseline data_parallel_baseline(const Scenario& scenario, const SearchOptions& options);

/// Which candidates below the best are worth a look because of what they use.
struct AdditionRule {
  std::vector<Dimension> dimensions;
  std::int64_t in_all = 0;  ///< at least so many with each dimension above 1, those of the best included
  std::int64_t always = 0;  ///< so many besides the best; one candidate may count for several dimensions
  std::int64_t own = 0;     ///< so many besides the best, each for one dimension only; the other two do not count then
};
/// Positions in `ranking` (best first), ascending, none below `top`.
[[nodiscard]] std::vector<std::size_t> additional_candidates(const std::vector<RankedCandidate>& ranking, std::size_t top, const AdditionRule& rule);

/// One search of a study.
struct StudyCase {
  std::string name;
  Scenario scenario;
  SearchSpace space;
  SearchOptions options;
};

/// What one search of a study came to.
struct StudyRow {
  std::string name;
  std::string problem;  ///< why there was no search; then only `name` counts
  std::string device, framework;  ///< type; name of the profile
  std::int64_t devices = 0, global_batch = 0, seq_length = 0;
  std::int64_t legal = 0, fitting = 0;
  std::optional<PricedCandidate> best;  ///< absent: nothing fits
  std::optional<NearMiss> nearest;      ///< the closest miss where nothing fits
  std::optional<double> price_per_hour; ///< of one device
  SearchEnd end = SearchEnd::complete;  ///< else `best` is the best of what was seen
  double band = 0;                      ///< relative error of a step time; rows closer than this are a tie

  /// Tokens per second of all devices together; 0 without `best`.
  [[nodiscard]] double tokens_per_second() const;
  /// Days that `tokens` take at this speed. Precondition: best.
  [[nodiscard]] double days(double tokens) const;
  /// Device-hours for `tokens`. Precondition: best.
  [[nodiscard]] double device_hours(double tokens) const;
  /// Price of `tokens`; nullopt when nobody states a price per device-hour. Precondition: best.
  [[nodiscard]] std::optional<double> cost(double tokens) const;
};

/// Searches one case for its best strategy. `price_per_hour` wins over the device's.
[[nodiscard]] StudyRow run_case(const StudyCase& one, std::optional<double> price_per_hour);

/// Several searches side by side.
struct Study {
  enum class Kind : std::uint8_t {
    what_if,       ///< the first row is the request as it stands, each other one changes something
    cluster_size,  ///< one row per number of devices, ascending
  };
  Kind kind = Kind::what_if;
  std::vector<StudyRow> rows;
  std::optional<double> tokens;         ///< of the whole training
  std::optional<double> deadline_days;
  bool complete = true;                 ///< every row was searched to its end
  std::optional<std::size_t> answer;    ///< cluster_size with a deadline: the row of the smallest cluster that meets it
};

/// Which clusters are tried.
struct ClusterSizes {
  std::int64_t least = 1, most = 1;
  std::int64_t step = 0;  ///< 0: doubling, and with a deadline a closer look between the last that misses it and the first that meets it
  std::int64_t node_devices = 1;  ///< the closer look stays at whole nodes
};
/// Where the cases of a study of sizes come from.
struct SizeCases {
  std::function<Result<StudyCase>(std::int64_t devices)> at;  ///< a case, or why that number of devices cannot be searched
  std::function<bool()> over = {};  ///< asked before each search: no more of them; may be empty
};

/// One search per cluster size. With `study.deadline_days` and `study.tokens` also the smallest that meets the deadline, by the
/// predicted time. Fills rows and answer of `study`.
[[nodiscard]] Study size_cluster(Study study, const ClusterSizes& sizes, const SizeCases& cases, std::optional<double> price_per_hour);

}  // namespace nd
