// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/log_profile.hpp"

namespace nd::harness {

struct StepRecord {
  std::optional<double> seconds, tokens_per_s, loss;
  double arrived_s = 0;  ///< clock of whoever feeds the log
};

/// Reads the output of a run as it comes, in pieces of any size, and keeps only what matters: figures of steps, failures, the last traceback.
/// Memory does not grow with the output. Colour codes and rank prefixes are no obstacle; a carriage return ends a line. Thread-compatible.
class StepLog {
 public:
  /// Both must outlive the log. `every`: steps between two step lines that do not number them.
  StepLog(const LogProfile& profile, const FailureTable& failures, std::int64_t every = 1) : profile_(profile), failures_(failures), every_(every) {}

  void feed(std::string_view bytes, double clock_s);
  /// What stands behind the last line end is a line too.
  void finish(double clock_s);

  [[nodiscard]] const std::map<std::int64_t, StepRecord>& steps() const { return steps_; }
  [[nodiscard]] const std::map<std::string, double>& summary() const { return summary_; }
  [[nodiscard]] const std::map<std::string, double>& out_of_memory() const { return amounts_; }
  [[nodiscard]] std::optional<double> allocated() const { return allocated_; }
  [[nodiscard]] std::optional<double> reserved() const { return reserved_; }
  [[nodiscard]] bool nan_loss() const { return nan_loss_; }
  /// The first failure of each class that a line names, with the line.
  [[nodiscard]] const std::map<RunStatus, std::string>& failures() const { return found_; }
  /// The first traceback whose exception is no mere consequence, else the first; its last line alone, and as a whole.
  [[nodiscard]] std::string cause() const;
  [[nodiscard]] std::string traceback() const;

 private:
  struct Capture {
    std::string prefix, text;
  };
  void line(std::string_view text, double clock_s);
  void read_step(const LineRule& rule, std::string_view text, double clock_s);
  void read_summary(const LineRule& rule, std::string_view text);
  void read_failure(std::string_view text);
  void read_traceback(std::string_view text);
  [[nodiscard]] bool secondary(std::string_view text) const;

  const LogProfile& profile_;
  const FailureTable& failures_;
  std::int64_t every_ = 1, lines_ = 0;
  std::string pending_;
  bool overlong_ = false;
  std::map<std::int64_t, StepRecord> steps_;
  std::map<std::string, double> summary_, amounts_;
  std::optional<double> allocated_, reserved_;
  bool nan_loss_ = false;
  std::map<RunStatus, std::string> found_;
  std::vector<Capture> open_;
  std::string primary_cause_, primary_text_, first_cause_, first_text_;
};

/// The text without ANSI escape sequences.
[[nodiscard]] std::string without_colours(std::string_view text);
/// The number at the start of the text, behind space and the signs that stand between a name and its value. Thousands may be set off by
/// commas; nan and inf are numbers here. nullopt: there is none.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);

}  // namespace nd::harness
