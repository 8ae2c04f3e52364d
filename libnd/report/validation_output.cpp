// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "nd/validation.hpp"
#include "report/validation_memory_tables.hpp"
#include "report/validation_tables.hpp"

namespace nd {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json integer(const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(nullptr); }
Json text_or_null(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }

Json statistics(const ErrorStatistics& s) {
  return Json{{"n", s.n}, {"mean_ape", s.mean_ape}, {"median_ape", s.median_ape}, {"p90_ape", s.p90_ape}, {"max_ape", s.max_ape}, {"bias", s.bias}};
}
Json summary(const ValidationSummary& s) { return Json{{"step_time", statistics(s.step_time)}, {"memory", statistics(s.memory)}}; }
Json summaries(const std::map<std::string, ValidationSummary>& groups) {
  Json out = Json::object();
  for (const auto& [name, group] : groups) out[name] = summary(group);
  return out;
}
Json fit_counts(const FitCounts& f) {
  return Json{{"ran", {{"yes", f.ran_yes}, {"tight", f.ran_tight}, {"no", f.ran_no}}},
              {"failed", {{"yes", f.failed_yes}, {"tight", f.failed_tight}, {"no", f.failed_no}}}};
}

Json stage_peaks_json(const ValidatedRow& row) {
  Json out = Json::array();
  for (const StagePeak& peak : row.stage_peaks)
    out.push_back({{"stage", peak.stage}, {"measured", peak.measured_gib}, {"predicted", peak.predicted_gib}});
  return out;
}
Json memory_groups(const std::vector<report::MemoryGroup>& groups) {
  Json out = Json::object();
  for (const report::MemoryGroup& group : groups)
    out[group.name] = {{"as_priced", statistics(group.as_priced)}, {"left_out", statistics(group.left_out)}};
  return out;
}

Json row_json(const ValidatedRow& row) {
  Json time = nullptr, memory = nullptr;
  if (row.predicted_step_time_s) {
    time = Json::object();
    for (std::size_t part = 0; part < kTimePartCount; ++part)
      time[std::string(to_text(static_cast<TimePart>(part)))] = row.time_parts_s[part];
  }
  if (row.predicted_peak_mem_gib) {
    memory = Json::object();
    for (const auto& [part, gib] : row.memory_parts_gib) memory[part] = gib;
  }
  return Json{{"file", row.measured.file_name()},
              {"line", row.measured.line},
              {"source", row.measured.source},
              {"model", row.measured.model},
              {"device", row.measured.device},
              {"devices", integer(row.measured.devices)},
              {"measured_step_time_s", number(row.measured_step_time_s)},
              {"predicted_step_time_s", number(row.predicted_step_time_s)},
              {"measured_peak_mem_gib", number(row.measured_peak_mem_gib)},
              {"predicted_peak_mem_gib", number(row.predicted_peak_mem_gib)},
              {"time_parts_s", std::move(time)},
              {"memory_parts_gib", std::move(memory)},
              {"skipped", text_or_null(row.skipped)},
              {"quarantined", text_or_null(row.quarantined)},
              {"time_quarantined", row.time_quarantined},
              {"memory_quarantined", row.memory_quarantined},
              {"priced_as", row.device},
              {"framework", row.framework},
              {"framework_version", row.framework_version},
              {"features", row.features},
              {"strategy", row.strategy},
              {"reading", {{"counter", to_text(row.reading.counter)}, {"stage", to_text(row.reading.stage)}, {"time", to_text(row.reading.time)}}},
              {"memory_only", row.memory_only},
              {"out_of_memory", row.measured.out_of_memory()},
              {"left_out_peak_mem_gib", number(row.left_out_peak_mem_gib)},
              {"stage_peaks_gib", stage_peaks_json(row)},
              {"fits", row.fit ? Json(to_text(*row.fit)) : Json(nullptr)},
              {"reserved_gib", row.priced() ? Json(row.reserved_gib) : Json(nullptr)},
              {"budget_gib", row.priced() ? Json(row.budget_gib) : Json(nullptr)},
              {"assumptions", row.assumptions}};
}

std::string headline(const ValidationReport& report) {
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const report::PeakCoverage peaks = report::peak_coverage(report);
  return fmt::format("{} rows: {} priced ({:.1f} %), {} skipped, {} quarantined. Of {} memory peaks {} priced ({:.1f} %).", report.rows.size(),
                     report.priced, share(report.priced, static_cast<std::int64_t>(report.rows.size())), report.skipped, report.quarantined,
                     peaks.stated, peaks.priced, share(peaks.priced, peaks.stated));
}

}  // namespace

std::string validation_json(const ValidationReport& report, bool with_rows) {
  Json root;
  root["schema"] = "nd/validation/1";
  root["counts"] = {{"rows", report.rows.size()}, {"priced", report.priced}, {"skipped", report.skipped}, {"quarantined", report.quarantined}};
  root["summary"] = {{"overall", summary(report.overall)},
                     {"files", summaries(report.files)},
                     {"devices", summaries(report.devices)},
                     {"frameworks", summaries(report.frameworks)}};
  const report::PeakCoverage peaks = report::peak_coverage(report);
  root["memory"] = {{"peaks_stated", peaks.stated},
                    {"peaks_priced", peaks.priced},
                    {"readings", memory_groups(report::memory_by_reading(report))},
                    {"sources", memory_groups(report::memory_by_source(report))}};
  root["fit"] = {{"overall", fit_counts(report.fit)}, {"files", Json::object()}};
  for (const auto& [name, counts] : report.fit_files) root["fit"]["files"][name] = fit_counts(counts);
  root["sweeps"] = Json::array();
  for (const Sweep& sweep : report.sweeps)
    root["sweeps"].push_back(Json{{"source", sweep.source}, {"model", sweep.model}, {"device", sweep.device}, {"devices", sweep.devices},
                                  {"seq_len", sweep.seq_len}, {"gbs", sweep.gbs}, {"n", sweep.n}, {"spearman", number(sweep.spearman)},
                                  {"regret", sweep.regret}, {"best_of_three", sweep.best_of_three}, {"variant", sweep.variant}, {"predicted_best", sweep.predicted_best},
                                  {"measured_best", sweep.measured_best}});
  if (with_rows) {
    root["rows"] = Json::array();
    for (const ValidatedRow& row : report.rows) root["rows"].push_back(row_json(row));
  }
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string validation_text(const ValidationReport& report, int worst) {
  std::string out = headline(report) + "\n";
  for (const report::StatisticsTable& table : report::validation_tables(report, worst)) {
    if (table.rows.empty()) continue;
    out += "\n" + report::to_plain_text(table);
  }
  return out;
}

std::string validation_markdown(const ValidationReport& report, int worst) {
  std::string out =
      "# Accuracy on published runs\n\n"
      "Made by `nd_validate --markdown`; do not edit. Every row of the measured tables is priced as the strategy it states, with nothing "
      "fitted to it while scoring. How rows are read is in [validation.md](validation.md).\n\n" +
      headline(report) + "\n\n";
  for (const report::StatisticsTable& table : report::validation_tables(report, worst)) {
    if (!table.rows.empty()) out += report::to_markdown(table);
  }
  return out;
}

std::optional<Diagnostic> write_validation_file(const std::string& path, const std::string& text) { return core::write_file(path, text); }

std::string validation_row_list(const ValidationReport& report) {
  std::string out;
  const auto value = [](const std::optional<double>& number_or_none) {
    return number_or_none ? fmt::format("{:.5g}", *number_or_none) : std::string("-");
  };
  const auto percent = [](const std::optional<double>& error) { return error ? fmt::format("{:+.1f}%", *error * 100) : std::string("-"); };
  for (const ValidatedRow& row : report.rows) {
    out += fmt::format("{}:{} {} {}x{}", row.measured.file_name(), row.measured.line, row.measured.model, row.measured.devices.value_or(0), row.device);
    if (row.priced())
      out += fmt::format(" [{}] {} {} time {} -> {} ({}) memory {} -> {} ({}) fits {}{}", row.strategy, row.framework, row.framework_version,
                         value(row.measured_step_time_s), value(row.predicted_step_time_s), percent(row.time_error()),
                         value(row.measured_peak_mem_gib), value(row.predicted_peak_mem_gib), percent(row.memory_error()),
                         row.fit ? to_text(*row.fit) : "-", row.measured.out_of_memory() ? " OOM" : "");
    if (!row.skipped.empty()) out += " SKIPPED " + row.skipped;
    for (const std::string& text : row.assumptions) out += " | " + text;
    out += "\n";
  }
  return out;
}

}  // namespace nd
