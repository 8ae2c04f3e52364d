// SPDX-License-Identifier: Apache-2.0
#include "measured/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace nd {

namespace {

constexpr std::array<std::string_view, kComparedPartCount> kNames{"comp", "dp_wait", "mp_wait", "ep_wait", "cp_wait", "pp_wait", "idle"};
constexpr std::array<std::size_t, 3> kTop{1, 3, 5};

std::string why_no_correlation(const std::vector<double>& measured, const std::vector<double>& estimated) {
  const auto constant = [](const std::vector<double>& values) { return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end(); };
  if (measured.size() < 2) return "fewer than two rows";
  if (constant(measured)) return "the measured values are all equal";
  if (constant(estimated)) return "the estimates are all equal";
  return "the values hardly differ";
}

/// Pairs of one part or of the whole step.
struct Pairs {
  std::vector<double> measured, estimated;
  double share_gap = 0;
  void add(double of_measured, double of_estimated, double step, double estimate) {
    measured.push_back(of_measured);
    estimated.push_back(of_estimated);
    share_gap += std::abs(of_measured / step - of_estimated / estimate);
  }
  [[nodiscard]] PartAgreement agreement() const {
    PartAgreement out;
    out.rows = static_cast<std::int64_t>(measured.size());
    if (measured.empty()) {
      out.why_none = "not measured";
      return out;
    }
    const double n = static_cast<double>(measured.size());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      out.mean_measured += measured[i] / n;
      out.mean_estimated += estimated[i] / n;
    }
    out.mean_share_gap = share_gap / n;
    out.pearson = pearson(measured, estimated);
    out.spearman = spearman(measured, estimated);
    out.kendall = kendall(measured, estimated);
    if (!out.pearson) out.why_none = why_no_correlation(measured, estimated);
    return out;
  }
};

void fill_parts(Comparison& comparison) {
  std::array<Pairs, kComparedPartCount> parts;
  Pairs total;
  double distance = 0;
  std::int64_t with_parts = 0;
  for (const ComparedRun& run : comparison.rows) {
    if (!run.skipped.empty()) continue;
    total.add(run.sample.step, run.estimated, run.sample.step, run.estimated);
    double squares = 0;
    bool any = false;
    for (std::size_t p = 0; p < kComparedPartCount; ++p) {
      const auto part = static_cast<ComparedPart>(p);
      const auto measured = run.measured_part(part);
      if (!measured) continue;
      any = true;
      parts[p].add(*measured, run.estimated_part(part), run.sample.step, run.estimated);
      const double gap = *measured / run.sample.step - run.estimated_part(part) / run.estimated;
      squares += gap * gap;
    }
    if (!any) continue;
    ++with_parts;
    distance += std::sqrt(squares);
  }
  for (std::size_t p = 0; p < kComparedPartCount; ++p) comparison.parts[p] = parts[p].agreement();
  comparison.total = total.agreement();
  if (with_parts > 0) comparison.share_distance = distance / static_cast<double>(with_parts);
}

ProblemAgreement agree(const std::string& name, const std::vector<const ComparedRun*>& runs) {
  ProblemAgreement out;
  out.problem = name;
  out.rows = static_cast<std::int64_t>(runs.size());
  std::vector<double> measured, estimated;
  const ComparedRun *best = runs.front(), *chosen = runs.front();
  for (const ComparedRun* run : runs) {
    measured.push_back(run->sample.step);
    estimated.push_back(run->estimated);
    if (run->sample.step < best->sample.step) best = run;
    if (run->estimated < chosen->estimated) chosen = run;
  }
  out.quality = ranking_quality(measured, estimated);
  out.leading = leading_agreement(measured, estimated);
  for (std::size_t i = 0; i < kTop.size(); ++i) out.top_overlap[i] = top_k_overlap(measured, estimated, kTop[i]);
  out.measured_best = best->strategy;
  out.predicted_best = chosen->strategy;
  return out;
}

}  // namespace

std::string_view to_text(ComparedPart part) { return kNames[static_cast<std::size_t>(part)]; }

namespace measured {

std::vector<MeasuredColumn> columns_of(ComparedPart part) {
  switch (part) {
    case ComparedPart::compute: return {MeasuredColumn::compute};
    case ComparedPart::dp: return {MeasuredColumn::dp_wait, MeasuredColumn::op_wait};
    case ComparedPart::mp: return {MeasuredColumn::mp_wait};
    case ComparedPart::ep: return {MeasuredColumn::ep_wait};
    case ComparedPart::cp: return {MeasuredColumn::cp_wait};
    case ComparedPart::pp: return {MeasuredColumn::pp_wait};
    case ComparedPart::idle: return {MeasuredColumn::idle};
  }
  return {};
}

void fill_agreement(Comparison& comparison) {
  fill_parts(comparison);
  std::vector<double> step, memory;
  std::map<std::string, std::vector<const ComparedRun*>> problems;
  for (const ComparedRun& run : comparison.rows) {
    if (!run.skipped.empty()) continue;
    step.push_back(run.estimated / run.sample.step - 1.0);
    if (run.sample.memory && run.sample.estimated_memory) memory.push_back(*run.sample.estimated_memory * comparison.memory_factor / *run.sample.memory - 1.0);
    problems[run.problem].push_back(&run);
  }
  comparison.step = error_statistics(step);
  comparison.memory = error_statistics(memory);
  for (const auto& [name, runs] : problems)
    if (runs.size() > 1) comparison.problems.push_back(agree(name, runs));
}

bool FingerprintOrder::operator()(const PriceFingerprint& a, const PriceFingerprint& b) const {
  const auto key = [](const PriceFingerprint& p) { return std::tie(p.model, p.device, p.framework, p.calibration, p.version); };
  return key(a) < key(b);
}

PriceFingerprint common_fingerprint(const std::vector<PriceFingerprint>& prints) {
  if (prints.empty()) return {};
  PriceFingerprint out = prints.front();
  for (const PriceFingerprint& print : prints)
    for (std::string PriceFingerprint::*member : {&PriceFingerprint::model, &PriceFingerprint::device, &PriceFingerprint::framework,
                                                  &PriceFingerprint::calibration, &PriceFingerprint::version})
      if (print.*member != out.*member) (out.*member).clear();
  return out;
}

}  // namespace measured

std::optional<double> ComparedRun::measured_part(ComparedPart part) const {
  std::optional<double> out;
  for (const MeasuredColumn column : measured::columns_of(part))
    if (const auto& value = sample.columns[static_cast<std::size_t>(column)]) out = out.value_or(0) + *value;
  return out;
}

double ComparedRun::estimated_part(ComparedPart part) const {
  double out = 0;
  for (std::size_t p = 0; p < kTimePartCount; ++p)
    for (const MeasuredColumn column : measured::columns_of(part))
      if (covers(column, static_cast<TimePart>(p))) out += parts[p];
  return out;
}

}  // namespace nd
