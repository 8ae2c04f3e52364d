// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "calibration/robust_ridge.hpp"
#include "nd/calibration.hpp"
#include "nd/ratios.hpp"
#include "nd/result.hpp"

namespace nd {

namespace {

using calibration::RidgeEquation;
using calibration::RidgeOptions;
using calibration::RidgeResult;
using calibration::solve_robust_ridge;
using Ratios = std::array<FittedRatio, kRatioKeyCount>;
using Samples = std::vector<RatioSample>;

constexpr double kNinetyPercent = 1.645;  // standard deviations on either side of a normal distribution
/// Left-out errors have to fall by this share before a fit with more freedom is believed.
constexpr double kWorthwhile = 0.05;
/// Whole steps that a ratio is believed from, at least. Three that lie close together are often three of one kind: of 20 halves of
/// published sweeps that moved the other half, 4 of the 14 with three rows made it worse by more than 5 %, none of the 6 with more.
constexpr std::size_t kFewestSteps = 4;
constexpr double kNoSignal = 1e-9;  // share of a step
constexpr double kCollinear = 0.9999;  // cosine of two columns of estimates

FittedRatio& at(Ratios& ratios, RatioKey key) { return ratios[static_cast<std::size_t>(key)]; }

/// Keys that take the ratio of a column.
std::vector<RatioKey> keys_of(MeasuredColumn column) {
  switch (column) {
    case MeasuredColumn::compute: return {RatioKey::compute, RatioKey::optimizer};
    case MeasuredColumn::op_wait: return {RatioKey::dp_comm};
    case MeasuredColumn::dp_wait: return {RatioKey::dp_reduce};
    case MeasuredColumn::mp_wait: return {RatioKey::mp_comm};
    case MeasuredColumn::ep_wait: return {RatioKey::ep_comm};
    case MeasuredColumn::cp_wait: return {RatioKey::cp_comm};
    case MeasuredColumn::pp_wait: return {RatioKey::pp_comm, RatioKey::bubble};
    case MeasuredColumn::idle: return {RatioKey::other};
  }
  return {};
}

const std::optional<double>& column_of(const RatioSample& sample, MeasuredColumn column) {
  return sample.columns[static_cast<std::size_t>(column)];
}

bool has_parts(const Samples& samples) {
  return std::any_of(samples.begin(), samples.end(), [](const RatioSample& sample) { return column_of(sample, MeasuredColumn::compute).has_value(); });
}

/// How the samples measure: a table without op_wait has the weight gathers in dp_wait as well.
struct Reading {
  bool parts = false, joint_data_parallel = false;
  explicit Reading(const Samples& samples) : parts(has_parts(samples)) {
    joint_data_parallel = parts && std::none_of(samples.begin(), samples.end(),
                                                [](const RatioSample& sample) { return column_of(sample, MeasuredColumn::op_wait).has_value(); });
  }
  [[nodiscard]] double estimate(const RatioSample& sample, MeasuredColumn column) const {
    double sum = 0;
    for (std::size_t part = 0; part < kTimePartCount; ++part) {
      const auto which = static_cast<TimePart>(part);
      if (covers(column, which) || (joint_data_parallel && column == MeasuredColumn::dp_wait && which == TimePart::dp_comm))
        sum += sample.estimated[part];
    }
    return sum;
  }
  /// What of the measured step the ratios are about.
  [[nodiscard]] double busy(const RatioSample& sample) const {
    if (!parts || !column_of(sample, MeasuredColumn::compute)) return sample.step;
    double sum = 0;
    for (std::size_t c = 0; c < kMeasuredColumnCount; ++c) {
      const auto column = static_cast<MeasuredColumn>(c);
      if (column_of(sample, column) && estimate(sample, column) > kNoSignal * sample.step) sum += *column_of(sample, column);
    }
    return sum > 0 ? sum : sample.step;
  }
};

FittedRatio fitted(double ratio, double error, std::int64_t rows) {
  FittedRatio out;
  out.ratio = ratio;
  out.low = std::max(0.0, ratio - kNinetyPercent * error);
  out.high = ratio + kNinetyPercent * error;
  out.rows = rows;
  out.signal = rows > 0;
  return out;
}

/// One unknown against one measured figure.
struct Single {
  std::vector<RidgeEquation> equations;
  double estimated = 0, measured = 0;
  void add(double estimate, double figure, double scale) {
    estimated += estimate;
    measured += figure;
    equations.push_back({{estimate / scale}, figure / scale});
  }
  [[nodiscard]] FittedRatio solve(double* noise = nullptr) const {
    if (equations.empty()) return {};
    const RidgeResult solved = solve_robust_ridge(equations, 1, {});
    FittedRatio out = fitted(solved.r[0], solved.error[0], static_cast<std::int64_t>(equations.size()));
    out.plain = measured / estimated;
    if (noise != nullptr) *noise = std::max(*noise, solved.noise);
    return out;
  }
};

void set_keys(Ratios& ratios, MeasuredColumn column, const FittedRatio& value) {
  for (const RatioKey key : keys_of(column)) at(ratios, key) = value;
}

FittedRatio memory_ratio(const Samples& samples) {
  Single memory;
  for (const RatioSample& sample : samples)
    if (sample.memory && sample.estimated_memory && *sample.memory > 0 && *sample.estimated_memory > 0)
      memory.add(*sample.estimated_memory, *sample.memory, *sample.memory);
  return memory.solve();
}

/// Every column by itself.
Ratios from_columns(const Samples& samples, const Reading& reading, double& noise) {
  Ratios out{};
  for (std::size_t c = 0; c < kMeasuredColumnCount; ++c) {
    const auto column = static_cast<MeasuredColumn>(c);
    Single single;
    for (const RatioSample& sample : samples) {
      const double estimate = reading.estimate(sample, column);
      if (column_of(sample, column) && estimate > kNoSignal * sample.step) single.add(estimate, *column_of(sample, column), sample.step);
    }
    set_keys(out, column, single.solve(&noise));
  }
  if (reading.joint_data_parallel) at(out, RatioKey::dp_comm) = at(out, RatioKey::dp_reduce);
  return out;
}

/// Whole steps only: all parts at once.
Ratios from_steps(const Samples& samples, const Reading& reading, double& noise) {
  std::vector<RidgeEquation> equations;
  std::array<std::int64_t, kMeasuredColumnCount> rows{};
  for (const RatioSample& sample : samples) {
    RidgeEquation equation{{}, 1.0};
    for (std::size_t c = 0; c < kMeasuredColumnCount; ++c) {
      equation.a.push_back(reading.estimate(sample, static_cast<MeasuredColumn>(c)) / sample.step);
      if (equation.a.back() > kNoSignal) ++rows[c];
    }
    equations.push_back(std::move(equation));
  }
  const RidgeResult solved = solve_robust_ridge(equations, kMeasuredColumnCount, {});
  noise = solved.noise;
  Ratios out{};
  for (std::size_t c = 0; c < kMeasuredColumnCount; ++c)
    if (rows[c] > 0) set_keys(out, static_cast<MeasuredColumn>(c), fitted(solved.r[c], solved.error[c], rows[c]));
  return out;
}

/// One ratio for all parts.
Ratios common_ratio(const Samples& samples, const Reading& reading, double& noise) {
  Single single;
  for (const RatioSample& sample : samples)
    if (const double estimate = sample.estimated_step(); estimate > 0) single.add(estimate, reading.busy(sample), sample.step);
  const FittedRatio ratio = single.solve(&noise);
  Ratios out{};
  for (std::size_t c = 0; c < kMeasuredColumnCount; ++c) set_keys(out, static_cast<MeasuredColumn>(c), ratio);
  return out;
}

struct LevelFit {
  Ratios ratios{};
  double noise = 0;
};

LevelFit fit_level(RatioLevel level, const Samples& samples) {
  LevelFit out;
  const Reading reading(samples);
  if (level == RatioLevel::common) out.ratios = common_ratio(samples, reading, out.noise);
  if (level == RatioLevel::per_part) out.ratios = reading.parts ? from_columns(samples, reading, out.noise) : from_steps(samples, reading, out.noise);
  at(out.ratios, RatioKey::memory) = memory_ratio(samples);
  return out;
}

CalibrationRatios as_calibration(const Ratios& ratios) {
  CalibrationRatios out;
  for (std::size_t key = 0; key < kRatioKeyCount; ++key)
    if (static_cast<RatioKey>(key) != RatioKey::forward) out.value[key] = ratios[key].ratio;
  if (!ratios[static_cast<std::size_t>(RatioKey::memory)].signal) out.value[static_cast<std::size_t>(RatioKey::memory)].reset();
  return out;
}

Samples without(const Samples& samples, std::size_t left_out) {
  Samples out;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (i != left_out) out.push_back(samples[i]);
  return out;
}

std::vector<double> left_out_steps(RatioLevel level, const Samples& samples) {
  std::vector<double> out;
  for (std::size_t i = 0; i < samples.size(); ++i)
    out.push_back(corrected_step(samples[i], as_calibration(fit_level(level, without(samples, i)).ratios).factors()));
  return out;
}

double mean_error(const std::vector<double>& predicted, const std::vector<double>& actual) {
  double sum = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) sum += std::abs(predicted[i] / actual[i] - 1.0);
  return actual.empty() ? 0 : sum / static_cast<double>(actual.size());
}

std::vector<double> errors_of(const std::vector<double>& predicted, const std::vector<double>& actual) {
  std::vector<double> out;
  for (std::size_t i = 0; i < actual.size(); ++i) out.push_back(std::abs(predicted[i] / actual[i] - 1.0));
  return out;
}

/// 97.5 % quantile of Student's t; exact to three digits up to ten degrees of freedom, within 1 % above.
double student(std::size_t freedom) {
  constexpr std::array<double, 10> kTable{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return freedom <= kTable.size() ? kTable[freedom - 1] : 1.96 + 2.6 / static_cast<double>(freedom);
}

/// Whether errors of rows left out fell by enough, and in too many rows to be chance: a paired t test. A handful of rows that happens to lie on
/// one side is no reason to move every later estimate.
bool believed(const std::vector<double>& before, const std::vector<double>& after) {
  const std::size_t n = before.size();
  if (n < 2) return false;
  const double count = static_cast<double>(n);
  double mean = 0, mean_before = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    mean += (before[i] - after[i]) / count;
    mean_before += before[i] / count;
  }
  for (std::size_t i = 0; i < n; ++i) squares += std::pow(before[i] - after[i] - mean, 2);
  const double error = std::sqrt(squares / (count - 1) / count);
  return mean > kWorthwhile * mean_before && mean > student(n - 1) * error;
}

/// A fit without its account by device.
class Fitting {
 public:
  explicit Fitting(const Samples& samples) : samples_(samples), reading_(samples) {
    for (const RatioSample& sample : samples) {
      ND_CHECK(sample.step > 0);
      raw_.push_back(sample.estimated_step());
      busy_.push_back(reading_.busy(sample));
      steps_.push_back(sample.step);
    }
  }

  RatioFit run() {
    out_.from_parts = reading_.parts;
    out_.error_before = mean_error(raw_, busy_);
    out_.before = ranking_quality(samples_, raw_);
    choose_level();
    const LevelFit chosen = fit_level(out_.level, samples_);
    out_.ratios = chosen.ratios;
    out_.noise = chosen.noise;
    check_memory();
    fill_rows();
    remark();
    return std::move(out_);
  }

 private:
  void choose_level() {
    if (samples_.empty()) return;
    std::vector<RatioLevel> levels{RatioLevel::per_part};
    if (!reading_.parts) levels.insert(levels.begin(), RatioLevel::common);
    if (samples_.size() == 1) {
      if (reading_.parts) out_.level = levels.front();
      return;
    }
    std::vector<double> best = errors_of(raw_, busy_);
    for (const RatioLevel level : levels) {
      if (level == RatioLevel::per_part && !reading_.parts && !enough_rows()) continue;
      std::vector<double> steps = left_out_steps(level, samples_);
      std::vector<double> errors = errors_of(steps, busy_);
      const double error = mean_error(steps, busy_);
      const bool better = (reading_.parts || samples_.size() >= kFewestSteps) && believed(best, errors);
      if (better) {
        out_.level = level;
        best = std::move(errors);
      }
      if (better || (out_.level == RatioLevel::none && (!out_.error_left_out || error < *out_.error_left_out))) {
        out_.error_left_out = error;
        left_out_ = std::move(steps);
      }
    }
  }

  /// Telling parts apart from whole steps takes rows that differ: two for every part.
  [[nodiscard]] bool enough_rows() const {
    std::size_t parts = 0;
    for (std::size_t c = 0; c < kMeasuredColumnCount; ++c) {
      const std::vector<double> share = shares(static_cast<MeasuredColumn>(c));
      if (std::any_of(share.begin(), share.end(), [](double s) { return s > kNoSignal; })) ++parts;
    }
    return samples_.size() >= 2 * parts;
  }

  /// A memory ratio that rows left out do not bear out is dropped like the others.
  void check_memory() {
    Samples measured;
    for (const RatioSample& sample : samples_)
      if (sample.memory && sample.estimated_memory && *sample.memory > 0 && *sample.estimated_memory > 0) measured.push_back(sample);
    if (measured.size() < 2) return;
    std::vector<double> raw, left_out, actual;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      actual.push_back(*measured[i].memory);
      raw.push_back(*measured[i].estimated_memory);
      left_out.push_back(raw.back() * memory_ratio(without(measured, i)).ratio);
    }
    const double before = mean_error(raw, actual), after = mean_error(left_out, actual);
    if (believed(errors_of(raw, actual), errors_of(left_out, actual))) return;
    at(out_.ratios, RatioKey::memory) = {};
    out_.remarks.push_back(fmt::format("no memory ratio: rows left out would be {:.1f} % off with one, they are {:.1f} % off without", 100 * after, 100 * before));
  }

  void fill_rows() {
    const PriceFactors factors = as_calibration(out_.ratios).factors();
    std::vector<double> corrected;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      RatioRow row;
      row.name = samples_[i].name;
      row.corrected = corrected_step(samples_[i], factors);
      if (i < left_out_.size()) row.left_out = left_out_[i];
      row.busy = busy_[i];
      row.step = steps_[i];
      corrected.push_back(row.corrected);
      out_.rows.push_back(std::move(row));
    }
    out_.after = ranking_quality(samples_, corrected);
    std::stable_sort(out_.rows.begin(), out_.rows.end(), [](const RatioRow& a, const RatioRow& b) { return a.corrected < b.corrected; });
  }

  void remark() {
    if (samples_.empty()) {
      out_.remarks.emplace_back("no row to learn from: every ratio is 1");
      return;
    }
    if (samples_.size() == 1) out_.remarks.emplace_back("one row: nothing could be held out to check the ratios");
    if (!reading_.parts && samples_.size() < kFewestSteps)
      out_.remarks.push_back(fmt::format("the fit abstains, every time ratio is 1: fewer than {} whole steps cannot tell a ratio from scatter; measured parts (comp, waits) can", kFewestSteps));
    else if (out_.level == RatioLevel::none)
      out_.remarks.push_back(fmt::format("the fit abstains, every time ratio is 1: rows left out would be predicted {:.1f} % off with ratios, they are {:.1f} % off without, which is no better or may be chance",
                                         100 * out_.error_left_out.value_or(0), 100 * out_.error_before));
    if (!reading_.parts)
      out_.remarks.emplace_back("only whole steps were measured: parts are told apart by how the rows differ, as far as they do");
    if (reading_.joint_data_parallel) out_.remarks.emplace_back("no op_wait column: DP_COMM and DP_REDUCE share one ratio");
    remark_columns();
    if (!reading_.parts && out_.level == RatioLevel::per_part) remark_collinear();
  }

  [[nodiscard]] std::vector<double> shares(MeasuredColumn column) const {
    std::vector<double> out;
    for (const RatioSample& sample : samples_) out.push_back(reading_.estimate(sample, column) / sample.step);
    return out;
  }

  void remark_columns() {
    for (std::size_t c = 0; c < kMeasuredColumnCount; ++c) {
      const auto column = static_cast<MeasuredColumn>(c);
      if (reading_.joint_data_parallel && column == MeasuredColumn::op_wait) continue;
      const std::vector<double> share = shares(column);
      const bool estimated = std::any_of(share.begin(), share.end(), [](double s) { return s > kNoSignal; });
      double measured = 0;
      bool any = false;
      for (const RatioSample& sample : samples_) {
        if (column_of(sample, column)) any = true;
        measured += column_of(sample, column).value_or(0) / sample.step / static_cast<double>(samples_.size());
      }
      const std::string key(to_text(keys_of(column).front()));
      if (reading_.parts && !estimated && measured > 0.005)
        out_.remarks.push_back(fmt::format("{} is {:.1f} % of the measured steps, nothing is estimated for it: no ratio mends that", to_text(column), 100 * measured));
      else if (reading_.parts && estimated && !any)
        out_.remarks.push_back(fmt::format("{} is estimated but was not measured: its ratio stays 1", key));
      else if (!estimated && out_.level == RatioLevel::per_part)
        out_.remarks.push_back(fmt::format("{} has no signal in these rows: its ratio stays 1", key));
    }
  }

  void remark_collinear() {
    for (std::size_t a = 0; a < kMeasuredColumnCount; ++a)
      for (std::size_t b = a + 1; b < kMeasuredColumnCount; ++b) {
        const auto first = shares(static_cast<MeasuredColumn>(a)), second = shares(static_cast<MeasuredColumn>(b));
        const double dot = std::inner_product(first.begin(), first.end(), second.begin(), 0.0);
        const double lengths = std::sqrt(std::inner_product(first.begin(), first.end(), first.begin(), 0.0) *
                                         std::inner_product(second.begin(), second.end(), second.begin(), 0.0));
        if (lengths > kNoSignal && dot > kCollinear * lengths)
          out_.remarks.push_back(fmt::format("{} and {} move together in these rows: only their sum is known",
                                             to_text(keys_of(static_cast<MeasuredColumn>(a)).front()),
                                             to_text(keys_of(static_cast<MeasuredColumn>(b)).front())));
      }
  }

  const Samples& samples_;
  Reading reading_;
  std::vector<double> raw_, busy_, steps_, left_out_;
  RatioFit out_;
};

std::vector<GroupHoldOut> hold_out_groups(const Samples& samples) {
  std::set<std::string> groups;
  for (const RatioSample& sample : samples) groups.insert(sample.group);
  std::vector<GroupHoldOut> out;
  if (groups.size() < 2) return out;
  for (const std::string& group : groups) {
    Samples rest, own;
    for (const RatioSample& sample : samples) (sample.group == group ? own : rest).push_back(sample);
    const PriceFactors factors = as_calibration(Fitting(rest).run().ratios).factors();
    GroupHoldOut line{group, static_cast<std::int64_t>(own.size()), 0, 0};
    const Reading reading(samples);
    for (const RatioSample& sample : own) {
      const double busy = reading.busy(sample) * static_cast<double>(own.size());
      line.error_before += std::abs(sample.estimated_step() - reading.busy(sample)) / busy;
      line.error_after += std::abs(corrected_step(sample, factors) - reading.busy(sample)) / busy;
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace

RatioFit fit_ratios(const std::vector<RatioSample>& samples) {
  RatioFit out = Fitting(samples).run();
  out.devices = hold_out_groups(samples);
  return out;
}

std::array<FittedRatio, kRatioKeyCount> fit_ratios_at(RatioLevel level, const std::vector<RatioSample>& samples) {
  return fit_level(level, samples).ratios;
}

CalibrationRatios RatioFit::calibration(FittedOn where) const {
  CalibrationRatios out = as_calibration(ratios);
  out.fitted_on = std::move(where);
  out.fitted_on.rows = static_cast<std::int64_t>(rows.size());
  out.fitted_on.unit = kRatioUnit;
  out.fitted_on.method = to_text(level);
  return out;
}

}  // namespace nd
