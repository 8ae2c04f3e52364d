// SPDX-License-Identifier: Apache-2.0
#include "report/validation_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <set>
#include <utility>

#include "core/text.hpp"
#include "report/validation_memory_tables.hpp"
#include "report/validation_peers.hpp"

namespace nd::report {
namespace {

std::string percent(double fraction) { return fmt::format("{:.1f}", fraction * 100.0); }
std::string signed_percent(double fraction) { return fmt::format("{:+.1f}", fraction * 100.0); }

void add_errors(std::vector<std::string>& row, const ErrorStatistics& s) {
  row.push_back(std::to_string(s.n));
  if (s.n == 0) {
    row.insert(row.end(), 5, "-");
    return;
  }
  for (const double value : {s.mean_ape, s.median_ape, s.p90_ape, s.max_ape}) row.push_back(percent(value));
  row.push_back(signed_percent(s.bias));
}

StatisticsTable error_table(std::string title, const std::map<std::string, ValidationSummary>& groups, const ValidationSummary* total) {
  StatisticsTable table;
  table.title = std::move(title);
  table.note = "Errors are predicted / measured - 1 in per cent: mean, median, 90th percentile and maximum of the absolute error; bias is the "
               "median of the signed one.";
  table.header = {"",       "time n",   "mean",   "median",  "p90",    "max",     "bias",
                  "memory n", "mean ", "median ", "p90 ", "max ", "bias "};
  const auto add = [&](const std::string& name, const ValidationSummary& summary) {
    std::vector<std::string> row{name};
    add_errors(row, summary.step_time);
    add_errors(row, summary.memory);
    table.rows.push_back(std::move(row));
  };
  for (const auto& [name, summary] : groups) add(name, summary);
  if (total != nullptr) add("all", *total);
  return table;
}

StatisticsTable memory_table(std::string title, std::string note, const std::vector<MemoryGroup>& groups) {
  StatisticsTable table;
  table.title = std::move(title);
  table.note = std::move(note);
  table.header = {"", "n", "mean", "median", "p90", "max", "bias", "left out: n", "mean ", "median ", "p90 ", "max ", "bias "};
  for (const MemoryGroup& group : groups) {
    std::vector<std::string> row{group.name};
    add_errors(row, group.as_priced);
    add_errors(row, group.left_out);
    table.rows.push_back(std::move(row));
  }
  return table;
}

StatisticsTable reading_table(const ValidationReport& report) {
  return memory_table("Memory by reading", "By stage: the ranks that the notes name, the fullest of each pipeline stage.", memory_by_reading(report));
}

StatisticsTable left_out_table(const ValidationReport& report) {
  return memory_table("Memory with each source left out",
                      "On the right the same rows with every fitted constant that only rows of their own file support taken from the generic profile, "
                      "as for a trainer nobody measured. Constants counted from code or documentation stay.",
                      memory_by_source(report));
}

/// Mean over the files of their mean, median and p90: no file counts for its size. Files whose times are launch-bound are left out.
std::vector<std::string> mean_of_files(const ValidationReport& report) {
  std::set<std::string> launch_bound;
  for (const ValidatedRow& row : report.rows)
    if (row.memory_only) launch_bound.insert(row.measured.file_name());
  ErrorStatistics mean;
  double files = 0;
  for (const auto& [name, summary] : report.files) {
    if (summary.step_time.n == 0 || launch_bound.count(name) > 0) continue;
    files += 1;
    mean.mean_ape += summary.step_time.mean_ape;
    mean.median_ape += summary.step_time.median_ape;
    mean.p90_ape += summary.step_time.p90_ape;
  }
  std::vector<std::string> cells{"mean of the files"};
  if (files == 0) return cells;
  cells.push_back(fmt::format("{:.0f} files", files));
  for (const double sum : {mean.mean_ape, mean.median_ape, mean.p90_ape}) cells.push_back(percent(sum / files));
  cells.insert(cells.end(), 8, "-");
  return cells;
}

StatisticsTable file_table(const ValidationReport& report) {
  StatisticsTable table = error_table("By file", report.files, &report.overall);
  if (auto cells = mean_of_files(report); cells.size() > 1) table.rows.push_back(std::move(cells));
  return table;
}

StatisticsTable fit_table(const ValidationReport& report) {
  StatisticsTable table;
  table.title = "Fit test";
  table.note = "Verdicts against what happened: rows that ran should fit (yes or tight), rows that ended out of memory should not.";
  table.header = {"", "ran: yes", "ran: tight", "ran: no", "failed: yes", "failed: tight", "failed: no"};
  const auto add = [&](const std::string& name, const FitCounts& f) {
    std::vector<std::string> row{name};
    for (const std::int64_t n : {f.ran_yes, f.ran_tight, f.ran_no, f.failed_yes, f.failed_tight, f.failed_no}) row.push_back(std::to_string(n));
    table.rows.push_back(std::move(row));
  };
  for (const auto& [name, counts] : report.fit_files) add(name, counts);
  add("all", report.fit);
  return table;
}

StatisticsTable sweep_table(const ValidationReport& report) {
  StatisticsTable table;
  table.title = "Ranking of strategies";
  table.note = "One line per source and model: sweeps of four or more strategies of the same problem. Regret is the measured time of the "
               "predicted best over the measured best, minus 1, in per cent; best of three that of the fastest among the three predicted fastest.";
  table.header = {"", "sweeps", "strategies", "rank correlation", "median", "mean regret", "median ", "max", "best of three"};
  struct Line {
    std::int64_t strategies = 0;
    std::vector<double> correlation, regret, of_three;
  };
  std::map<std::string, Line> lines;
  const auto add_to = [](Line& line, const Sweep& sweep) {
    line.strategies += sweep.n;
    if (sweep.spearman) line.correlation.push_back(*sweep.spearman);
    line.regret.push_back(sweep.regret);
    line.of_three.push_back(sweep.best_of_three);
  };
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  const auto cells = [&mean](const std::string& name, const Line& line) {
    const bool ranked = !line.correlation.empty();
    return std::vector<std::string>{name,
                                    std::to_string(line.regret.size()),
                                    std::to_string(line.strategies),
                                    ranked ? fmt::format("{:.2f}", mean(line.correlation)) : "-",
                                    ranked ? fmt::format("{:.3f}", quantile(line.correlation, 0.5)) : "-",
                                    percent(mean(line.regret)),
                                    percent(quantile(line.regret, 0.5)),
                                    percent(quantile(line.regret, 1.0)),
                                    fmt::format("{:.2f}", 100.0 * mean(line.of_three))};
  };
  Line all;
  for (const Sweep& sweep : report.sweeps) {
    add_to(lines[sweep.model + ", " + sweep.device + " (" + sweep.source.substr(0, 40) + ")"], sweep);
    add_to(all, sweep);
  }
  for (const auto& [name, line] : lines) table.rows.push_back(cells(name, line));
  if (!report.sweeps.empty()) table.rows.push_back(cells("all", all));
  return table;
}

using RowError = std::function<std::optional<double>(const ValidatedRow&)>;

StatisticsTable worst_table(const ValidationReport& report, int worst, bool time) {
  StatisticsTable table;
  table.title = time ? "Worst step times" : "Worst memory peaks";
  table.header = {"row", "model", "device", "strategy", "measured", "predicted", "error %", "may be"};
  const RowError error = [time](const ValidatedRow& row) { return time ? row.time_error() : row.memory_error(); };
  std::vector<const ValidatedRow*> rows;
  for (const ValidatedRow& row : report.rows)
    if (error(row) && !(time && row.memory_only)) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ValidatedRow* a, const ValidatedRow* b) { return std::abs(*error(*a)) > std::abs(*error(*b)); });
  if (rows.size() > static_cast<std::size_t>(std::max(worst, 0))) rows.resize(static_cast<std::size_t>(std::max(worst, 0)));
  for (const ValidatedRow* row : rows) {
    const double measured = time ? *row->measured_step_time_s : *row->measured_peak_mem_gib;
    const double predicted = time ? *row->predicted_step_time_s : *row->predicted_peak_mem_gib;
    std::string candidates;
    for (const std::string& text : error_candidates(*row)) candidates += (candidates.empty() ? "" : "; ") + text;
    table.rows.push_back({fmt::format("{}:{}", row->measured.file_name(), row->measured.line), row->measured.model,
                          fmt::format("{} {}", row->measured.devices.value_or(0), row->device), row->strategy, fmt::format("{:.4g}", measured),
                          fmt::format("{:.4g}", predicted), signed_percent(*error(*row)), candidates});
  }
  return table;
}

StatisticsTable reason_table(const ValidationReport& report, bool quarantined) {
  StatisticsTable table;
  table.title = quarantined ? "Quarantined rows" : "Skipped rows";
  table.note = quarantined ? "Priced but not scored: the source is known or shown to be wrong or not comparable." : "Not priced.";
  table.header = {"reason", "rows", "first"};
  std::map<std::string, std::pair<std::int64_t, std::string>> reasons;
  for (const ValidatedRow& row : report.rows) {
    if (quarantined ? row.quarantined.empty() : row.skipped.empty() || !row.quarantined.empty()) continue;
    auto& entry = reasons[quarantined ? row.quarantined : row.skipped];
    if (entry.first++ == 0) entry.second = fmt::format("{}:{}", row.measured.file_name(), row.measured.line);
  }
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::string>>> sorted(reasons.begin(), reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  for (const auto& [reason, count] : sorted) table.rows.push_back({reason, std::to_string(count.first), count.second});
  return table;
}

}  // namespace

std::vector<std::string> error_candidates(const ValidatedRow& row) {
  std::vector<std::string> out;
  const std::string& notes = row.measured.notes;
  if (const auto flag = notes.find("flag:"); flag != std::string::npos)
    out.push_back("the row is flagged" + notes.substr(flag + 4, notes.find(';', flag) - flag - 4));
  for (const std::string& text : row.assumptions) out.push_back(text);
  if (row.predicted_step_time_s && *row.predicted_step_time_s < 0.2) out.emplace_back("a step this short is mostly overhead");
  if (core::contains_ignoring_case(notes, "varies") || core::contains_ignoring_case(notes, "assumed")) out.emplace_back("the notes name an uncertainty");
  if (out.empty() && row.predicted_step_time_s) {
    std::size_t largest = 0;
    for (std::size_t part = 1; part < kTimePartCount; ++part)
      if (row.time_parts_s[part] > row.time_parts_s[largest]) largest = part;
    out.push_back("largest part " + std::string(to_text(static_cast<TimePart>(largest))));
  }
  if (out.empty()) out.emplace_back("nothing known");
  return out;
}

std::vector<StatisticsTable> validation_tables(const ValidationReport& report, int worst) {
  std::vector<StatisticsTable> out;
  out.push_back(file_table(report));
  out.push_back(error_table("By device", report.devices, nullptr));
  out.push_back(error_table("By framework", report.frameworks, nullptr));
  out.push_back(reading_table(report));
  out.push_back(left_out_table(report));
  out.push_back(fit_table(report));
  out.push_back(sweep_table(report));
  for (StatisticsTable& table : peer_tables(report)) out.push_back(std::move(table));
  out.push_back(worst_table(report, worst, true));
  out.push_back(worst_table(report, worst, false));
  out.push_back(reason_table(report, false));
  out.push_back(reason_table(report, true));
  return out;
}

std::string to_plain_text(const StatisticsTable& table) {
  std::vector<std::size_t> width(table.header.size(), 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) width[i] = std::max(width[i], cells[i].size());
  };
  measure(table.header);
  for (const auto& row : table.rows) measure(row);
  std::string out = table.title + "\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i)
      text += i == 0 ? fmt::format("{:<{}}", cells[i], width[i]) : fmt::format("  {:>{}}", cells[i], width[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(table.header);
  for (const auto& row : table.rows) line(row);
  return out;
}

std::string to_markdown(const StatisticsTable& table) {
  const auto escaped = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  std::string out = "## " + table.title + "\n\n";
  if (!table.note.empty()) out += table.note + "\n\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) out += "| " + escaped(cell) + " ";
    out += "|\n";
  };
  line(table.header);
  for (std::size_t i = 0; i < table.header.size(); ++i) out += i == 0 ? "|---" : "|--:";
  out += "|\n";
  for (const auto& row : table.rows) line(row);
  return out + "\n";
}

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string to_html(const StatisticsTable& table) {
  std::string out = "<h2>" + escape_html(table.title) + "</h2>\n";
  if (!table.note.empty()) out += "<p>" + escape_html(table.note) + "</p>\n";
  out += "<table><thead><tr>";
  for (const std::string& cell : table.header) out += "<th>" + escape_html(cell) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + escape_html(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

}  // namespace nd::report
