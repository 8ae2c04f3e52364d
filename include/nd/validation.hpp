// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nd/calibration.hpp"
#include "nd/data_store.hpp"
#include "nd/memory.hpp"
#include "nd/perf.hpp"
#include "nd/result.hpp"

namespace nd {

/// Which counter a published memory figure is.
enum class MemoryCounter : std::uint8_t { allocated, reserved, device };
/// Of which pipeline stage it is; this_rank = the logging rank, taken as the first stage.
enum class MemoryStage : std::uint8_t { maximum, this_rank, first_stage, last_stage };

/// How a table read its memory: which counter, where, when.
struct MemoryReading {
  MemoryCounter counter = MemoryCounter::allocated;
  MemoryStage stage = MemoryStage::maximum;
  ReadingTime time = ReadingTime::steady;
  friend bool operator==(const MemoryReading&, const MemoryReading&) = default;
};

/// Peak of one pipeline stage: the fullest of its ranks that a row names, and what the model says.
struct StagePeak {
  int stage = 0;
  double measured_gib = 0, predicted_gib = 0;
};

/// One measured row and what the model says about it.
struct ValidatedRow {
  MeasuredRow measured;
  std::string skipped;      ///< why it was not priced, or not scored (then "quarantine: ..."); empty = scored
  std::string quarantined;  ///< reason of data/measured/quarantine.csv; what it concerns is priced but not scored
  bool time_quarantined = false, memory_quarantined = false;
  std::string device, framework, framework_version, strategy;  ///< as resolved
  std::vector<std::string> features;
  std::vector<std::string> assumptions;  ///< what the row left open and how it was filled
  MemoryReading reading;
  bool unknown_device = false;      ///< skipped because no device file has this name
  bool memory_only = false;         ///< the source says its times are launch-bound: their error counts in the file's own table only
  std::optional<double> measured_step_time_s, predicted_step_time_s;
  std::optional<double> measured_peak_mem_gib, predicted_peak_mem_gib;
  std::array<double, kTimePartCount> time_parts_s{};                ///< exposed, by TimePart
  std::vector<std::pair<std::string, double>> memory_parts_gib;     ///< of the stage that was read
  std::vector<StagePeak> stage_peaks;                               ///< where the notes name ranks
  /// The peak once more with every fitted constant that only rows of this file support taken from the generic profile.
  std::optional<double> left_out_peak_mem_gib;
  std::optional<Fit> fit;                                           ///< verdict on the steady state of the heaviest stage
  double reserved_gib = 0, budget_gib = 0;                          ///< what the verdict compares

  [[nodiscard]] bool priced() const { return predicted_step_time_s.has_value() || predicted_peak_mem_gib.has_value(); }
  /// predicted / measured - 1, nullopt when either is missing or the row is not scored.
  [[nodiscard]] std::optional<double> time_error() const;
  [[nodiscard]] std::optional<double> memory_error() const;
  [[nodiscard]] std::optional<double> left_out_memory_error() const;
};

struct ValidationSummary {
  ErrorStatistics step_time, memory;
};

/// Verdicts of the fit test against what happened. "tight" is within the model's own error of the budget.
struct FitCounts {
  std::int64_t ran_yes = 0, ran_tight = 0, ran_no = 0;           ///< rows that ran
  std::int64_t failed_yes = 0, failed_tight = 0, failed_no = 0;  ///< rows that ended out of memory
};

/// Step-time errors of one model on one group of rows; fractions, absent = not known.
struct PeerFigures {
  std::string name, setting;
  std::optional<std::int64_t> rows;
  std::optional<double> mean, median, max, bias;   ///< of the absolute errors; bias: median of the signed ones
  std::optional<double> rank_correlation, regret;  ///< of the one sweep the rows form
};
/// This model and others on the same rows.
struct PeerGroup {
  std::string title;
  PeerFigures own;
  std::vector<PeerFigures> peers;
};

struct ValidationReport {
  std::vector<ValidatedRow> rows;  ///< in input order
  ValidationSummary overall;
  std::map<std::string, ValidationSummary> files, devices, frameworks;
  FitCounts fit;
  std::map<std::string, FitCounts> fit_files;
  std::vector<Sweep> sweeps;
  std::vector<PeerGroup> peers;    ///< data/measured/peers.yaml
  std::vector<Diagnostic> notes;
  std::int64_t priced = 0, skipped = 0, quarantined = 0;
};

/// Reads a measured-run table; every problem of the file at once.
[[nodiscard]] Result<std::vector<MeasuredRow>> read_measured_rows(const std::string& path);
/// Prices each row as the strategy it states. Nothing is fitted. Errors: no rows; a file of `data` that a row needs and that
/// cannot be read. A row that cannot be priced is no error but a `skipped` reason; names of devices no file has are in `notes`,
/// and so is that nothing was priced. The same for every `jobs` (0 = all cores).
[[nodiscard]] Result<ValidationReport> validate_rows(const std::vector<MeasuredRow>& rows, const DataStore& data, int jobs = 1);

/// The document nd/validation/1. `rows` off leaves the rows out.
[[nodiscard]] std::string validation_json(const ValidationReport& report, bool with_rows = true);
/// Tables for a terminal; `worst`: how many of the worst rows are listed.
[[nodiscard]] std::string validation_text(const ValidationReport& report, int worst = 10);
/// docs/accuracy.md.
[[nodiscard]] std::string validation_markdown(const ValidationReport& report, int worst = 10);
/// One self-contained page with tables and measured-against-predicted charts.
[[nodiscard]] std::string validation_html(const ValidationReport& report, int worst = 10);
/// Writes one of the above, whole or not at all; the reason when it failed.
[[nodiscard]] std::optional<Diagnostic> write_validation_file(const std::string& path, const std::string& text);
/// data/measured/bands.yaml: the p90 error of step times per framework version and device, and of the wider groups.
[[nodiscard]] std::string step_time_bands_yaml(const ValidationReport& report);
/// One line per row.
[[nodiscard]] std::string validation_row_list(const ValidationReport& report);

[[nodiscard]] const char* to_text(MemoryCounter counter);
[[nodiscard]] const char* to_text(MemoryStage stage);
[[nodiscard]] const char* to_text(ReadingTime time);

}  // namespace nd
