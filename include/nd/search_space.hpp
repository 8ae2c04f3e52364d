// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nd/parallel_config.hpp"
#include "nd/result.hpp"
#include "nd/run_spec.hpp"
#include "nd/scenario.hpp"

namespace nd {

/// What a strategy can vary, in the order of enumeration: the domain of each depends only on those before it.
enum class Dimension : std::uint8_t {
  tp, pp, cp, dp, ep, etp, sequence_parallel, micro_batch_size, micro_batch_num, vpp, schedule, zero, optimizer_shard, recompute
};
inline constexpr std::size_t kDimensionCount = 14;

/// Why a combination is no candidate. Append-only; every rejected combination has exactly one.
enum class Rejection : std::uint8_t {
  unsupported_by_framework,    ///< the framework profile does not offer this dimension or value
  devices_mismatch,            ///< dp * tp * pp * cp is not the number of devices
  heads_not_divisible,         ///< tp does not divide the attention heads
  kv_heads_not_divisible,      ///< tp neither divides the KV heads nor can replicate them
  width_not_divisible,         ///< tp (etp) does not divide a feed-forward (expert) width
  layers_not_divisible,        ///< layers do not split over pp * vpp
  too_many_stages,             ///< fewer layers than stages or chunks
  sequence_not_divisible,      ///< the sequence does not split over cp (ring: 2 cp) or tp * cp
  experts_not_divisible,       ///< ep does not divide the experts
  expert_group_not_divisible,  ///< ep * etp does not divide dp * cp * tp
  no_experts,                  ///< ep or etp above 1 for a dense model
  batch_mismatch,              ///< dp * mbs * mb is not the global batch
  micro_batches_below_stages,  ///< fewer micro-batches than the schedule needs
  schedule_unsupported,        ///< schedule and degrees contradict each other
  sequence_parallel_conflict,  ///< sequence parallelism without tp, or needed and off
  sharding_conflict,           ///< optimizer shards do not fit the data-parallel group or the ZeRO level
  out_of_memory,               ///< legal, but does not fit
  equivalent,                  ///< legal, but priced exactly as a strategy with fewer dimensions in use, which stands for it
};
inline constexpr std::size_t kRejectionCount = 18;

/// Name of the reason as in the JSON output ("heads_not_divisible").
[[nodiscard]] std::string_view to_text(Rejection rejection);
/// One sentence for a person.
[[nodiscard]] std::string_view describe(Rejection rejection);

/// Names of one dimension.
struct DimensionInfo {
  Dimension id{};
  std::string_view acronym;  ///< on the -l list: "TP"
  std::string_view alias;    ///< other spelling there ("MP"); may be empty
  std::string_view name;     ///< JSON key and CSV column: "tp"
  std::string_view field;    ///< field of RunSpec, key of its origins
  std::string_view title;
  std::string_view rule;     ///< which values are legal, in words
};
[[nodiscard]] std::vector<DimensionInfo> dimension_list();
[[nodiscard]] DimensionInfo dimension_info(Dimension dimension);
/// By acronym, alias or name, any case. Unknown: out_of_range with the nearest.
[[nodiscard]] Result<Dimension> parse_dimension(std::string_view text, const SourceRef& where);

/// The value of a dimension as a number: degrees as they are, switches 0/1, enumerations by position.
[[nodiscard]] std::int64_t value_of(const ParallelConfig& config, Dimension dimension);
/// "8", "on", "interleaved".
[[nodiscard]] std::string value_text(Dimension dimension, std::int64_t value);
/// The reverse of value_text; numbers are accepted for switches and enumerations too.
[[nodiscard]] Result<std::int64_t> parse_value(Dimension dimension, std::string_view text, const SourceRef& where);

/// Which values of one dimension are tried.
struct DimensionChoice {
  std::vector<std::int64_t> values;  ///< empty = automatic: every value that the rules allow
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> excluded;
  /// The value is what the source states and nobody asked to vary it. It gives way where the other degrees leave one
  /// possibility only (sequence parallelism without tp).
  bool pinned = false;
  [[nodiscard]] bool admits(std::int64_t value) const;
  [[nodiscard]] bool automatic() const;
  friend bool operator==(const DimensionChoice&, const DimensionChoice&) = default;
};

/// The request for a search: one choice per dimension. Plain value type.
struct SearchSpace {
  std::array<DimensionChoice, kDimensionCount> choices;
  [[nodiscard]] const DimensionChoice& of(Dimension d) const { return choices[static_cast<std::size_t>(d)]; }
  [[nodiscard]] DimensionChoice& of(Dimension d) { return choices[static_cast<std::size_t>(d)]; }
  friend bool operator==(const SearchSpace&, const SearchSpace&) = default;
};

/// Everything automatic except the dimensions that are not in `searched`: those keep what `stated` says; where it says
/// nothing, what `fallback` (the resolved strategy) has. OP brings ZERO along; DP, ETP, SCHED and OP follow from the others
/// unless stated, MB always.
[[nodiscard]] SearchSpace pin_dimensions(const RunSpec& stated, const ParallelConfig& fallback,
                                         const std::vector<Dimension>& searched);
/// Every dimension fixed at the values of one strategy.
[[nodiscard]] SearchSpace fixed_space(const ParallelConfig& config);
/// `space` with one more condition: "tp=2,4,8", "pp<=8", "cp>=2", "tp!=16", "ep=auto".
[[nodiscard]] Result<SearchSpace> with_setting(SearchSpace space, std::string_view text, const SourceRef& where);
/// "tp=2,4 pp<=8 ..." of what is not automatic; empty when everything is.
[[nodiscard]] std::string to_text(const SearchSpace& space);

/// Pipeline schedules that a framework can run, in the order of the schedule table. Names that are none are left out.
[[nodiscard]] std::vector<Schedule> supported_schedules(const CapabilityProfile& can);

/// Why `config` cannot run in `scenario`; nullopt when it is legal. Never says out_of_memory or equivalent.
[[nodiscard]] std::optional<Rejection> first_violation(const Scenario& scenario, const ParallelConfig& config);

/// Problems of `space` that no candidate can satisfy: values that are impossible whatever the other dimensions do, with the
/// nearest possible ones; a batch that cannot be reached, with the nearest reachable; contradicting conditions. `where` names
/// the option or file of a dimension in the messages.
[[nodiscard]] std::vector<Diagnostic> check_space(const Scenario& scenario, const SearchSpace& space);

}  // namespace nd
