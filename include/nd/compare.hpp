// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nd/calibration.hpp"
#include "nd/data_store.hpp"
#include "nd/fingerprint.hpp"
#include "nd/ratios.hpp"
#include "nd/run_spec.hpp"
#include "nd/search.hpp"
#include "nd/search_space.hpp"

// Measured runs beside what is estimated for them: docs/measured.md.
namespace nd {

/// What a table of measured runs is, by its columns.
enum class TableKind : std::uint8_t {
  classified,  ///< time, comp, *_wait and degrees of one run: nd_bench classify, the predecessor's classifier
  runs,        ///< docs/validation.md: every row states model, device and strategy
  benchmark,   ///< raw_summary.csv and benchmarks.csv of the fms-acceleration harness
};
[[nodiscard]] const char* to_text(TableKind kind);

/// One row that states one measured step, before anything is priced. Seconds.
struct MeasuredStep {
  int line = 0;
  std::string skipped;  ///< why it cannot be priced; empty = it can be tried
  std::map<Dimension, std::int64_t> degrees;
  std::optional<std::int64_t> devices, global_batch;
  std::string model;    ///< as the row names it; empty = not stated
  double time = 0;
  std::optional<double> trainer_time;  ///< the trainer's own step, without a profiler
  std::array<std::optional<double>, kMeasuredColumnCount> columns{};
  std::optional<double> memory_gib;
  bool memory_is_reserved = false;     ///< what the device or the allocator holds, not what tensors take
  std::string dtype, recompute, notes; ///< of a benchmark row, as a table of runs states them
};

struct StepTable {
  std::string file;
  TableKind kind = TableKind::classified;
  std::vector<MeasuredStep> steps;
  std::vector<Diagnostic> notes;
};
/// Reads a classified or benchmark table; every problem of the file at once. For a table of runs `steps` is empty: read_measured_rows reads it.
[[nodiscard]] Result<StepTable> read_step_table(const std::string& path);

/// The run that a classified or benchmark table is about.
struct ComparisonBase {
  Scenario scenario;  ///< model, profile, cluster of the configuration
  RunSpec stated;     ///< what it states; the rows' degrees go over it
};

/// Parts of a step as both sides can tell them apart.
enum class ComparedPart : std::uint8_t { compute, dp, mp, ep, cp, pp, idle };
inline constexpr std::size_t kComparedPartCount = 7;
[[nodiscard]] std::string_view to_text(ComparedPart part);  ///< "comp", "dp_wait"

/// One measured run and its estimate.
struct ComparedRun {
  int line = 0;
  std::string skipped;   ///< why it was not priced; then the rest is not there
  std::string model, device, problem;  ///< rows of equal `problem` are strategies for the same work
  ParallelConfig config;
  std::string strategy;
  std::string settings;  ///< PriceFingerprint::framework, where rows of a table have their own; else empty
  RatioSample sample;    ///< measured and estimated, uncalibrated
  std::optional<double> trainer_time;
  double estimated = 0;  ///< seconds, calibrated when a calibration was given
  std::array<double, kTimePartCount> parts{};  ///< of `estimated`
  std::vector<std::string> assumptions;
  [[nodiscard]] std::optional<double> measured_part(ComparedPart part) const;
  [[nodiscard]] double estimated_part(ComparedPart part) const;
};

/// How one part agrees over all rows.
struct PartAgreement {
  std::int64_t rows = 0;                 ///< that measured it
  double mean_measured = 0, mean_estimated = 0;  ///< seconds
  double mean_share_gap = 0;             ///< mean |measured share of the step - estimated share|
  std::optional<double> pearson, spearman, kendall;
  std::string why_none;                  ///< reason when there is no correlation
};

/// The ranking of the rows of one problem.
struct ProblemAgreement {
  std::string problem;
  std::int64_t rows = 0;
  RankingQuality quality;
  std::int64_t leading = 0;              ///< leading_agreement
  std::array<double, 3> top_overlap{};   ///< k = 1, 3, 5
  std::string measured_best, predicted_best;
};

struct Comparison {
  std::string file;
  TableKind kind = TableKind::classified;
  bool calibrated = false;
  double memory_factor = 1;              ///< of the calibration
  std::vector<ComparedRun> rows;         ///< in file order, skipped ones too
  ErrorStatistics step, memory;
  std::array<PartAgreement, kComparedPartCount> parts{};
  PartAgreement total;
  std::optional<double> share_distance;  ///< mean over rows of the Euclidean distance of the shares; only with measured parts
  std::vector<ProblemAgreement> problems;  ///< of two or more rows
  std::vector<Diagnostic> notes;
  PriceFingerprint fingerprint;
  std::vector<std::string> devices, models, frameworks;  ///< of the priced rows
  [[nodiscard]] std::int64_t priced() const;
};

/// Prices a classified table. Fails when no row can be priced, with every reason.
[[nodiscard]] Result<Comparison> compare_steps(const StepTable& table, const ComparisonBase& base, const PriceFactors& factors = {});
/// Prices a benchmark table: its rows become rows of a table of runs about the model and device of `base`, so that what data/measured says of
/// the harness (versions, kernels, adapters, counters) holds for them.
[[nodiscard]] Result<Comparison> compare_benchmark(const StepTable& table, const ComparisonBase& base, const DataStore& data, const PriceFactors& factors = {});
/// Prices a table of runs; the rows state everything.
[[nodiscard]] Result<Comparison> compare_runs(const std::string& path, const DataStore& data, const PriceFactors& factors = {});
/// The samples of the priced rows.
[[nodiscard]] std::vector<RatioSample> ratio_samples(const Comparison& comparison);

/// Reads a calibration file; every problem at once. A file whose ratios are of another unit is refused with the reason.
[[nodiscard]] Result<CalibrationRatios> read_ratios(const std::string& path);
[[nodiscard]] std::string ratios_json(const CalibrationRatios& ratios);
/// What a fit on these rows is good for.
[[nodiscard]] FittedOn fitted_on(const Comparison& comparison);
/// Warnings where the ratios were fitted on something else than the scenario: device, version, changed data.
[[nodiscard]] std::vector<Diagnostic> check_calibration(const CalibrationRatios& ratios, const Scenario& scenario, const SourceRef& where);

/// Times of one candidate under a calibration; what follows from the step goes along. Memory stays as estimated.
void calibrate(PricedCandidate& candidate, const PriceFactors& factors);
/// search_strategies with every step time calibrated before it is ranked. Prices the whole space: what the best uncalibrated candidates prune
/// may be best.
[[nodiscard]] SearchResult calibrated_search(const Scenario& scenario, const SearchSpace& space, SearchOptions options, const PriceFactors& factors);

[[nodiscard]] std::string comparison_text(const Comparison& comparison, int verbosity = 2);
[[nodiscard]] std::string ratio_fit_text(const RatioFit& fit);
/// nd/comparison/1.
[[nodiscard]] std::string comparison_json(const Comparison& comparison, const RatioFit* fit = nullptr);
/// `<stem>_estimates.csv`: degrees, recompute, measured and estimated seconds, memory, the parts.
[[nodiscard]] std::string comparison_csv(const Comparison& comparison);
/// One chart as a whole SVG document.
struct ComparisonChart {
  std::string name, title, svg;  ///< name: "bars", "scatter", "residuals"
};
[[nodiscard]] std::vector<ComparisonChart> comparison_charts(const Comparison& comparison);
/// One self-contained page: charts, tables, the fit.
[[nodiscard]] std::string comparison_html(const Comparison& comparison, const RatioFit* fit = nullptr);

}  // namespace nd
