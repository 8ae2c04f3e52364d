// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nd/perf.hpp"
#include "nd/scenario.hpp"

// Ratios of what was measured to what was estimated, per part of a step: docs/measured.md#ratios.
namespace nd {

/// What a calibration multiplies an estimate with; 1 = as the model says.
struct PriceFactors {
  std::array<double, kTimePartCount> time{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};  ///< by TimePart
  double memory = 1;
  /// What was fitted on runs with adapters, say, is not about runs without: PriceFingerprint::framework of the rows behind the
  /// factors; empty = of one trainer as it stands. Rows of measured runs with other settings keep their estimates.
  std::vector<std::string> settings = {};
  [[nodiscard]] bool identity() const { return time == PriceFactors{}.time && memory == 1; }
  friend bool operator==(const PriceFactors&, const PriceFactors&) = default;
};
/// Every part times its factor, exposed and hidden alike; the step is their new sum. Nothing changes, to the bit, with factors of 1.
void scale(TimeBreakdown& time, const PriceFactors& factors);

/// Keys of a calibration file; the names of the predecessor, and ours after BUBBLE.
enum class RatioKey : std::uint8_t {
  compute, forward, dp_comm, dp_reduce, mp_comm, ep_comm, cp_comm, pp_comm, bubble, optimizer, other, memory
};
inline constexpr std::size_t kRatioKeyCount = 12;
[[nodiscard]] std::string_view to_text(RatioKey key);  ///< "COMPUTE"

/// Columns of a measured step that are fitted, each against the parts it is made of. `idle` is what the others leave of the step.
enum class MeasuredColumn : std::uint8_t { compute, op_wait, dp_wait, mp_wait, ep_wait, cp_wait, pp_wait, idle };
inline constexpr std::size_t kMeasuredColumnCount = 8;
[[nodiscard]] std::string_view to_text(MeasuredColumn column);  ///< "comp", "op_wait"
/// Whether the part is estimated for what the column measures.
[[nodiscard]] bool covers(MeasuredColumn column, TimePart part);

/// One measured step beside its estimate. Seconds; GiB.
struct RatioSample {
  std::string name;   ///< of the strategy
  std::string group;    ///< device, where a table has several
  std::string problem;  ///< rows of equal `problem` are strategies for the same work, and are ranked against each other
  double step = 0;    ///< measured
  std::array<double, kTimePartCount> estimated{};
  std::array<std::optional<double>, kMeasuredColumnCount> columns{};  ///< absent = not measured
  std::optional<double> memory, estimated_memory;
  [[nodiscard]] double estimated_step() const;
};

/// What ratios were fitted on, and what they are therefore good for.
struct FittedOn {
  std::string csv;
  std::int64_t rows = 0;
  std::vector<std::string> strategies;
  std::string device, model, framework, estimator_version, unit;
  std::string device_digest, model_digest, framework_digest;  ///< of the facts behind the names; empty = not stated
  std::string method;                                         ///< RatioFit::level as text
  std::vector<std::string> settings = {};                     ///< see PriceFactors::settings
  friend bool operator==(const FittedOn&, const FittedOn&) = default;
};
/// The unit of our files: our estimates are seconds, so that the ratios have none.
inline constexpr std::string_view kRatioUnit = "measured/estimated";

/// A calibration file. Absent keys: FORWARD and OPTIMIZER are as COMPUTE, OTHER and MEMORY are 1.
struct CalibrationRatios {
  std::array<std::optional<double>, kRatioKeyCount> value{};
  FittedOn fitted_on;
  [[nodiscard]] std::optional<double> of(RatioKey key) const { return value[static_cast<std::size_t>(key)]; }
  [[nodiscard]] PriceFactors factors() const;
  friend bool operator==(const CalibrationRatios&, const CalibrationRatios&) = default;
};

/// One fitted ratio.
struct FittedRatio {
  double ratio = 1;
  double low = 1, high = 1;            ///< nine in ten: ratio -+ 1.645 standard errors, not below 0
  std::optional<double> plain;         ///< sum of measured / sum of estimated
  std::int64_t rows = 0;               ///< that say something about it
  bool signal = false;                 ///< false: nothing estimated or measured, the ratio stands at 1
  friend bool operator==(const FittedRatio&, const FittedRatio&) = default;
};

/// How much of the fit the held-out rows bear out.
enum class RatioLevel : std::uint8_t { none, common, per_part };
[[nodiscard]] const char* to_text(RatioLevel level);

/// Errors of one way to predict rows: |corrected / measured - 1|, and what following the ranking costs.
struct RankingQuality {
  double mean_error = 0, median_error = 0;
  double regret = 0;  ///< measured step of the predicted best / measured best - 1
  std::optional<double> pearson, spearman, kendall;
  friend bool operator==(const RankingQuality&, const RankingQuality&) = default;
};

/// One row of the report, seconds.
struct RatioRow {
  std::string name;
  double corrected = 0;                 ///< by the ratios of all rows
  std::optional<double> left_out;       ///< by the ratios of the other rows; absent with one row
  double busy = 0;                      ///< what of the step the ratios are about
  double step = 0;
};

/// Rows of one device predicted by the ratios of all other devices.
struct GroupHoldOut {
  std::string group;
  std::int64_t rows = 0;
  double error_before = 0, error_after = 0;  ///< means of |predicted / measured - 1|
};

struct RatioFit {
  RatioLevel level = RatioLevel::none;  ///< none: the fit abstains, every time ratio is 1
  bool from_parts = false;              ///< columns were measured; otherwise only whole steps
  std::array<FittedRatio, kRatioKeyCount> ratios{};  ///< of the chosen level
  double noise = 0;                     ///< robust scatter of the residuals, share of a step
  double error_before = 0;              ///< mean |estimated / busy - 1|
  std::optional<double> error_left_out; ///< the same of left-out predictions at `per_part` or `common`, whichever was tried last and best
  std::vector<RatioRow> rows;           ///< by corrected estimate
  RankingQuality before, after;
  std::vector<GroupHoldOut> devices;    ///< with two or more devices
  std::vector<std::string> remarks;     ///< what a person should know: abstained, no signal, collinear, few rows
  [[nodiscard]] CalibrationRatios calibration(FittedOn where) const;
};

/// Non-negative robust regression with a ridge towards 1. Never fails; with nothing to learn from it abstains and says so.
/// Deterministic; thread-safe.
[[nodiscard]] RatioFit fit_ratios(const std::vector<RatioSample>& samples);
/// The ratios that the fit of exactly one level would give: for hold-outs.
[[nodiscard]] std::array<FittedRatio, kRatioKeyCount> fit_ratios_at(RatioLevel level, const std::vector<RatioSample>& samples);
/// Sum of the parts after correction, seconds.
[[nodiscard]] double corrected_step(const RatioSample& sample, const PriceFactors& factors);

/// Correlations of pairs; nullopt for fewer than two points or when one side is constant. Precondition: equal lengths.
[[nodiscard]] std::optional<double> pearson(const std::vector<double>& a, const std::vector<double>& b);
[[nodiscard]] std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b);  ///< tau-b
/// Errors over all rows; regret and correlations are the means over the problems of two or more rows (absent where no problem has one).
[[nodiscard]] RankingQuality ranking_quality(const std::vector<RatioSample>& samples, const std::vector<double>& predicted);
/// The same of one problem. Empty input gives zeros.
[[nodiscard]] RankingQuality ranking_quality(const std::vector<double>& measured, const std::vector<double>& predicted);
/// Rows that leading positions of the measured order have in common with the predicted order: how many leading rows, fastest measured
/// first, hold the smallest prediction among the rows from there on.
[[nodiscard]] std::int64_t leading_agreement(const std::vector<double>& measured, const std::vector<double>& predicted);
/// Share of the k fastest measured rows that are among the k fastest predicted ones; k is at most the number of rows.
[[nodiscard]] double top_k_overlap(const std::vector<double>& measured, const std::vector<double>& predicted, std::size_t k);

}  // namespace nd
