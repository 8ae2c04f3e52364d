// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "nd/bench.hpp"

namespace nd::harness {

/// A figure in a line: the number behind a text, or the first group of a regular expression.
struct FieldRule {
  std::string name, after;
  std::optional<std::regex> pattern;
  double factor = 1;  ///< into seconds, bytes, tokens per second
};
/// Lines that contain all texts have these fields.
struct LineRule {
  std::vector<std::string> contains;
  std::vector<FieldRule> fields;
  bool pairs = false;  ///< also every 'name': number of a Python dictionary
};
/// data/log_profiles/<name>.yaml, schema nd/log_profile/1.
struct LogProfile {
  std::string name, title, every;  ///< `every`: fact that says how many steps lie between two lines
  std::vector<std::string> frameworks;
  std::vector<LineRule> steps, summary;
};
/// By file name or by the framework profile it serves.
[[nodiscard]] Result<LogProfile> read_log_profile(std::string_view name, const DataStore& data);

/// What a log line says about a failure.
struct FailurePattern {
  RunStatus status = RunStatus::crash;
  std::string contains;
};
struct AmountRule {
  std::string name, after, before;
};
/// data/bench/failures.yaml, schema nd/failures/1.
struct FailureTable {
  std::vector<FailurePattern> patterns;
  std::vector<std::string> secondary;  ///< errors that only follow from others
  std::vector<AmountRule> amounts;
};
[[nodiscard]] Result<FailureTable> read_failures(const DataStore& data);

}  // namespace nd::harness
