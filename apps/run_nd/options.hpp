// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nd/diagnostic.hpp"
#include "nd/units.hpp"

namespace run_nd {

/// "64", "64..4096" (doubling), "64..512:64" (in steps).
struct DeviceCounts {
  std::int64_t least = 0, most = 0;
  std::int64_t step = 0;  ///< 0: doubling
  [[nodiscard]] bool single() const { return least == most; }
  friend bool operator==(const DeviceCounts&, const DeviceCounts&) = default;
};

/// A number of things with an optional decimal suffix: "15T", "300B", "1.5e12".
struct Amount {
  double value = 0;
};

/// What a question changes that no option states. From --what-if.
struct Supposed {
  std::vector<std::pair<std::string, double>> links;  ///< name of a network level (empty: all), factor on its bandwidth
  std::optional<nd::Bytes> memory;                    ///< what a run can use of a device
};

/// What the command line says. Absent = not given.
struct Options {
  std::string train_yaml, accelerate_yaml, search_config;
  std::string input, framework, model, device_type, output_dir, ranking_csv, json, list, data_dir, explain, trace, report, generate, calibration, real_csv, write_ratios, verify, census, expert_load, objective, shard, part;
  std::optional<DeviceCounts> devices;
  std::optional<std::int64_t> global_batch, seq_length, jobs, top, verbosity, balance;
  std::optional<nd::Bytes> max_memory, memory_reserve;
  std::optional<std::vector<std::string>> dimensions;
  std::vector<std::string> settings, recompute, schedules, what_if, parts;
  std::optional<Amount> tokens;
  std::optional<double> deadline_days, price, time_limit;
  std::optional<std::int64_t> exhaustive, force_exhaustive, fforce_exhaustive;
  Supposed supposed;
  bool strict = false, auto_recompute = false, swap_states = false, potentials = false, manual_balance = false, all = false, pareto = false, timings = false, help = false, version = false;
};

using Target = std::variant<std::monostate, bool Options::*, std::string Options::*, std::optional<std::int64_t> Options::*,
                            std::optional<double> Options::*, std::optional<Amount> Options::*, std::optional<nd::Bytes> Options::*,
                            std::optional<DeviceCounts> Options::*, std::vector<std::string> Options::*,
                            std::optional<std::vector<std::string>> Options::*>;

/// How many words an option takes.
enum class Arity { flag, one, repeated, list };

/// What a run of the program does: exactly one of these. Bits, so that an option can name those that honour it.
enum Mode : unsigned {
  kPages = 1U << 0U,    ///< help, version, generated pages
  kList = 1U << 1U,     ///< --list
  kExplain = 1U << 2U,  ///< --explain file: one strategy, no search
  kSearch = 1U << 3U,
  kWhatIf = 1U << 4U,   ///< --what-if: one search per change
  kSizes = 1U << 5U,    ///< -d A..B: one search per cluster
  kCompare = 1U << 6U,  ///< --real_csv: measured runs
  kVerify = 1U << 7U,   ///< --verify, --census: a checkpoint
  kMerge = 1U << 8U,    ///< merge PART...: finish what shards began
};
inline constexpr unsigned kStudy = kWhatIf | kSizes;
inline constexpr unsigned kSearching = kSearch | kStudy;
inline constexpr unsigned kPricing = kExplain | kSearching;
inline constexpr unsigned kEveryMode = ~0U;

/// Sections of help, man page and docs/cli.md, in this order.
enum class Group { input, space, answer, output, program };

/// One option. The parser, the checks, --help, the man page, the completions and docs/cli.md all come from these rows.
struct OptionRow {
  std::string_view short_names{};  ///< with dashes, separated by spaces: "-mem"
  std::string_view name{};         ///< "--mem_for_ppb"
  Arity arity = Arity::flag;
  std::string_view value{};        ///< what help calls the value
  std::int64_t least = 0, most = 0;  ///< of a number
  std::string_view preset{};       ///< default, in words
  std::string_view help{};         ///< of an option that is not available: what to use instead; may be empty
  Group group = Group::program;
  unsigned modes = kEveryMode;     ///< that honour it; any other refuses it
  std::string_view needs{};        ///< long names separated by spaces, one of which must be given
  std::string_view excludes{};     ///< long names separated by spaces, none of which may be given
  /// What the shell offers: words separated by spaces, "@file", "@dir", or "@devices" (any --list). Empty: nothing.
  std::string_view offers{};
  Target target{};                 ///< monostate: not available in this version
  bool hidden = false;
  [[nodiscard]] bool available() const { return !std::holds_alternative<std::monostate>(target); }
};
[[nodiscard]] std::span<const OptionRow> option_table();

struct ParsedOptions {
  Options options;
  Mode mode = kSearch;
  std::vector<std::string> words;        ///< the same in the one spelling of canonical_words()
  std::vector<nd::Diagnostic> problems;  ///< every problem of the command line
};
/// `words` without the program's name.
[[nodiscard]] ParsedOptions parse_options(const std::vector<std::string>& words);

/// Words of ParsedOptions::words.
[[nodiscard]] ParsedOptions parse_canonical(std::vector<std::string> words);

/// "-d", or the long name where there is no short one.
[[nodiscard]] std::string shown_name(const OptionRow& row);
/// A diagnostic about an option.
[[nodiscard]] nd::Diagnostic usage_error(std::string_view option, std::string message, std::string hint = {});

}  // namespace run_nd
