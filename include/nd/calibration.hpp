// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nd {

/// One line of a measured-run table (docs/validation.md lists the columns). Absent = the cell was empty. Plain value type.
struct MeasuredRow {
  std::string file;  ///< path as it was given
  int line = 0;      ///< 1-based; the header is line 1
  std::string source, model, device, zero, recompute, dtype, notes;
  std::string reading, framework, framework_version;  ///< optional extra columns

  std::optional<double> params_b;  ///< total parameters, 1e9
  std::optional<std::int64_t> hidden, layers, heads, kv_heads, head_dim, ffn, vocab;
  std::optional<std::int64_t> experts, topk, moe_ffn, shared_experts;
  std::optional<double> seq_len;  ///< tokens per sample; fractional where the source gives a mean
  std::optional<std::int64_t> devices, dp, tp, pp, cp, ep, vpp;
  std::optional<bool> sp;
  std::optional<std::int64_t> mbs, gbs;  ///< sequences
  std::optional<double> step_time_s, tokens_per_s_per_device, tflops_per_device, mfu, peak_mem_gib;

  /// The file name without folders.
  [[nodiscard]] std::string file_name() const;
  /// The run failed for memory: the notes start with "OOM;" or are just "OOM". Its peak_mem_gib is no peak.
  [[nodiscard]] bool out_of_memory() const;
  /// Seconds per step: stated, else gbs * seq_len / (tokens_per_s_per_device * devices). Never from TFLOP/s.
  [[nodiscard]] std::optional<double> measured_step_time() const;
  friend bool operator==(const MeasuredRow&, const MeasuredRow&) = default;
};

/// predicted / measured - 1 of many rows. Fractions.
struct ErrorStatistics {
  std::int64_t n = 0;
  double mean_ape = 0, median_ape = 0, p90_ape = 0, max_ape = 0;  ///< of the absolute errors
  double bias = 0;                                               ///< median of the signed errors
  friend bool operator==(const ErrorStatistics&, const ErrorStatistics&) = default;
};

/// Quantile q in [0, 1] with linear interpolation between order statistics (position q * (n - 1)); 0 for no values.
[[nodiscard]] double quantile(std::vector<double> values, double q);
/// `signed_errors`: predicted / measured - 1 per row. All zero for no rows.
[[nodiscard]] ErrorStatistics error_statistics(const std::vector<double>& signed_errors);
/// Rank correlation with average ranks for ties; nullopt for fewer than two points or when one side is constant.
/// Precondition: equal lengths.
[[nodiscard]] std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

/// One row of a sweep: what is held, which strategy, what was measured and predicted (seconds per step).
struct SweepPoint {
  std::string source, model, device;
  std::int64_t devices = 0, gbs = 0;
  double seq_len = 0;
  std::string variant;   ///< anything else that is held: shape, dtype, software
  std::string strategy;  ///< points of equal strategy are repeats
  double measured = 0, predicted = 0;
};

/// How well a group of strategies of one problem is ranked.
struct Sweep {
  std::string source, model, device, variant;
  std::int64_t devices = 0, gbs = 0;
  double seq_len = 0;
  std::int64_t n = 0;  ///< strategies
  std::optional<double> spearman;
  double regret = 0;   ///< measured time of the predicted best / measured best - 1
  double best_of_three = 0;  ///< the same of the fastest among the three predicted fastest: what trying three costs
  std::string predicted_best, measured_best;
};

/// Groups of at least `least` strategies, ordered by source, model, device, devices, seq_len, gbs, variant. Repeats of a strategy count once,
/// by the median of measured and predicted. Ties of the prediction go to the strategy whose text is first.
[[nodiscard]] std::vector<Sweep> find_sweeps(const std::vector<SweepPoint>& points, std::int64_t least = 4);

}  // namespace nd
