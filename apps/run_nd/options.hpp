// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nd/diagnostic.hpp"
#include "nd/units.hpp"

namespace run_nd {

/// What the command line says. Absent = not given.
struct Options {
  std::string input, framework, model, device_type, output_dir, ranking_csv, json, list, data_dir, explain, trace, report;
  std::optional<std::int64_t> devices, global_batch, seq_length, jobs, top, verbosity;
  std::optional<nd::Bytes> max_memory, memory_reserve;
  std::optional<std::vector<std::string>> dimensions;
  std::vector<std::string> settings, recompute, schedules;
  bool strict = false, all = false, timings = false, help = false, help_markdown = false, version = false;
};

using Target = std::variant<std::monostate, bool Options::*, std::string Options::*, std::optional<std::int64_t> Options::*,
                            std::optional<nd::Bytes> Options::*, std::vector<std::string> Options::*,
                            std::optional<std::vector<std::string>> Options::*>;

/// How many words an option takes.
enum class Arity { flag, one, repeated, list };

/// One option. The parser, the checks, --help and docs/cli.md all come from these rows.
struct OptionRow {
  std::string_view short_names;  ///< with dashes, separated by spaces: "-mem"
  std::string_view name;         ///< "--mem_for_ppb"
  Arity arity = Arity::flag;
  std::string_view value;        ///< what help calls the value
  std::int64_t least = 0, most = 0;  ///< of an integer
  std::string_view preset;       ///< default, in words
  std::string_view help;
  std::string_view needs, excludes;  ///< long names separated by spaces: one of `needs` must be given, none of `excludes`
  Target target;                 ///< monostate: not available in this version
  bool hidden = false;
  [[nodiscard]] bool available() const { return !std::holds_alternative<std::monostate>(target); }
};
[[nodiscard]] std::span<const OptionRow> option_table();

struct ParsedOptions {
  Options options;
  std::vector<nd::Diagnostic> problems;  ///< every problem of the command line
};
/// `words` without the program's name.
[[nodiscard]] ParsedOptions parse_options(const std::vector<std::string>& words);

[[nodiscard]] std::string help_text();
[[nodiscard]] std::string help_markdown();

/// A diagnostic about an option.
[[nodiscard]] nd::Diagnostic usage_error(std::string_view option, std::string message, std::string hint = {});

}  // namespace run_nd
