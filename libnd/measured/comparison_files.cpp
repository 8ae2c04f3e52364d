// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/csv.hpp"
#include "nd/compare.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json quality_json(const RankingQuality& quality) {
  return Json{{"mean_error", quality.mean_error},           {"median_error", quality.median_error},       {"regret", quality.regret},
              {"pearson", optional_json(quality.pearson)}, {"spearman", optional_json(quality.spearman)}, {"kendall", optional_json(quality.kendall)}};
}

Json errors_json(const ErrorStatistics& e) {
  return Json{{"n", e.n}, {"mean_ape", e.mean_ape}, {"median_ape", e.median_ape}, {"p90_ape", e.p90_ape}, {"max_ape", e.max_ape}, {"bias", e.bias}};
}

Json parts_json(const std::array<double, kTimePartCount>& parts) {
  Json out = Json::object();
  for (std::size_t part = 0; part < kTimePartCount; ++part) out[std::string(to_text(static_cast<TimePart>(part)))] = parts[part];
  return out;
}

Json run_json(const ComparedRun& run, double memory_factor) {
  if (!run.skipped.empty()) return Json{{"line", run.line}, {"skipped", run.skipped}};
  Json measured = Json::object();
  for (std::size_t c = 0; c < kMeasuredColumnCount; ++c)
    if (run.sample.columns[c]) measured[std::string(to_text(static_cast<MeasuredColumn>(c)))] = *run.sample.columns[c];
  Json degrees = Json::object();
  for (const auto& info : dimension_list()) degrees[std::string(info.name)] = value_text(info.id, value_of(run.config, info.id));
  Json out{{"line", run.line},
           {"skipped", nullptr},
           {"model", run.model},
           {"device", run.device},
           {"problem", run.problem},
           {"strategy", run.strategy},
           {"degrees", std::move(degrees)},
           {"measured_step_time_s", run.sample.step},
           {"step_trainer_s", optional_json(run.trainer_time)},
           {"estimated_step_time_s", run.estimated},
           {"uncalibrated_step_time_s", run.sample.estimated_step()},
           {"measured_parts_s", std::move(measured)},
           {"time_parts_s", parts_json(run.parts)},
           {"measured_memory_gib", optional_json(run.sample.memory)},
           {"estimated_memory_gib", run.sample.estimated_memory ? Json(*run.sample.estimated_memory * memory_factor) : Json(nullptr)},
           {"assumptions", run.assumptions}};
  return out;
}

Json agreement_json(const PartAgreement& part) {
  return Json{{"rows", part.rows},
              {"mean_measured_s", part.mean_measured},
              {"mean_estimated_s", part.mean_estimated},
              {"mean_share_gap", part.mean_share_gap},
              {"pearson", optional_json(part.pearson)},
              {"spearman", optional_json(part.spearman)},
              {"kendall", optional_json(part.kendall)},
              {"why_none", part.why_none}};
}

Json fit_json(const RatioFit& fit) {
  Json ratios = Json::object();
  for (std::size_t key = 0; key < kRatioKeyCount; ++key) {
    const FittedRatio& r = fit.ratios[key];
    if (static_cast<RatioKey>(key) == RatioKey::forward) continue;
    ratios[std::string(to_text(static_cast<RatioKey>(key)))] =
        Json{{"ratio", r.ratio}, {"low", r.low}, {"high", r.high}, {"plain", optional_json(r.plain)}, {"rows", r.rows}, {"signal", r.signal}};
  }
  Json devices = Json::array();
  for (const auto& d : fit.devices) devices.push_back({{"device", d.group}, {"rows", d.rows}, {"error_before", d.error_before}, {"error_after", d.error_after}});
  return Json{{"level", to_text(fit.level)},
              {"from_parts", fit.from_parts},
              {"noise", fit.noise},
              {"error_before", fit.error_before},
              {"error_left_out", optional_json(fit.error_left_out)},
              {"ratios", std::move(ratios)},
              {"before", quality_json(fit.before)},
              {"after", quality_json(fit.after)},
              {"left_out_devices", std::move(devices)},
              {"remarks", fit.remarks}};
}

/// Shortest text that reads back to the same number.
std::string number(double value) { return fmt::format("{}", value); }

}  // namespace

std::string comparison_json(const Comparison& comparison, const RatioFit* fit) {
  Json rows = Json::array(), parts = Json::object(), problems = Json::array(), notes = Json::array();
  for (const ComparedRun& run : comparison.rows) rows.push_back(run_json(run, comparison.memory_factor));
  for (std::size_t p = 0; p < kComparedPartCount; ++p) parts[std::string(to_text(static_cast<ComparedPart>(p)))] = agreement_json(comparison.parts[p]);
  for (const auto& p : comparison.problems)
    problems.push_back({{"problem", p.problem},
                        {"rows", p.rows},
                        {"quality", quality_json(p.quality)},
                        {"leading", p.leading},
                        {"top_overlap", {{"1", p.top_overlap[0]}, {"3", p.top_overlap[1]}, {"5", p.top_overlap[2]}}},
                        {"measured_best", p.measured_best},
                        {"estimated_best", p.predicted_best}});
  for (const Diagnostic& note : comparison.notes) notes.push_back(to_text(note));
  const auto& print = comparison.fingerprint;
  const Json document{{"schema", "nd/comparison/1"},
                      {"file", comparison.file},
                      {"kind", to_text(comparison.kind)},
                      {"calibrated", comparison.calibrated},
                      {"priced", comparison.priced()},
                      {"devices", comparison.devices},
                      {"models", comparison.models},
                      {"frameworks", comparison.frameworks},
                      {"fingerprint", {{"model", print.model}, {"device", print.device}, {"framework", print.framework}, {"calibration", print.calibration}, {"version", print.version}}},
                      {"step_time", errors_json(comparison.step)},
                      {"memory", errors_json(comparison.memory)},
                      {"parts", std::move(parts)},
                      {"step", agreement_json(comparison.total)},
                      {"share_distance", optional_json(comparison.share_distance)},
                      {"problems", std::move(problems)},
                      {"fit", fit == nullptr ? Json(nullptr) : fit_json(*fit)},
                      {"notes", std::move(notes)},
                      {"rows", std::move(rows)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string comparison_csv(const Comparison& comparison) {
  std::vector<std::string> head{"line", "model", "device"};
  for (const auto& info : dimension_list()) head.emplace_back(info.acronym);
  for (const char* name : {"time_s", "estimated_s", "memory_gib", "estimated_memory_gib"}) head.emplace_back(name);
  for (std::size_t part = 0; part < kTimePartCount; ++part) head.push_back(std::string(to_text(static_cast<TimePart>(part))) + "_s");
  head.emplace_back("not_priced");
  std::string out = formats::csv_line(head);
  for (const ComparedRun& run : comparison.rows) {
    std::vector<std::string> cells{std::to_string(run.line), run.model, run.device};
    const bool priced = run.skipped.empty();
    for (const auto& info : dimension_list()) cells.push_back(priced ? value_text(info.id, value_of(run.config, info.id)) : "");
    cells.push_back(priced ? number(run.sample.step) : "");
    cells.push_back(priced ? number(run.estimated) : "");
    cells.push_back(priced && run.sample.memory ? number(*run.sample.memory) : "");
    cells.push_back(priced && run.sample.estimated_memory ? number(*run.sample.estimated_memory * comparison.memory_factor) : "");
    for (const double part : run.parts) cells.push_back(priced ? number(part) : "");
    cells.push_back(run.skipped);
    out += formats::csv_line(cells);
  }
  return out;
}

}  // namespace nd
