// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "nd/validation.hpp"
#include "report/validation_tables.hpp"

namespace nd {
namespace {

struct Dot {
  double measured = 0, predicted = 0;
  std::size_t group = 0;
  std::string title;
};

struct Chart {
  std::string title, unit;
  std::vector<Dot> dots;
};

constexpr double kSize = 460, kMargin = 46;  // pixels
/// Distinguishable on white and by people who do not tell red from green (Okabe-Ito).
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#555555"};

/// Log-log square with the identity and the +-10 % band.
class LogPlot {
 public:
  explicit LogPlot(const std::vector<Dot>& dots) {
    double low = 1e300, high = 0;
    for (const Dot& dot : dots) {
      low = std::min({low, dot.measured, dot.predicted});
      high = std::max({high, dot.measured, dot.predicted});
    }
    first_ = static_cast<int>(std::floor(std::log10(low)));
    last_ = std::max(first_ + 1, static_cast<int>(std::ceil(std::log10(high))));
  }
  [[nodiscard]] int first() const { return first_; }
  [[nodiscard]] int last() const { return last_; }
  [[nodiscard]] double x(double value) const { return kMargin + share(value) * kSize; }
  [[nodiscard]] double y(double value) const { return kMargin + (1 - share(value)) * kSize; }
  [[nodiscard]] double low() const { return std::pow(10.0, first_); }
  [[nodiscard]] double high() const { return std::pow(10.0, last_); }

 private:
  [[nodiscard]] double share(double value) const { return (std::log10(value) - first_) / (last_ - first_); }
  int first_ = 0, last_ = 1;
};

std::string chart_svg(const Chart& chart, const std::vector<std::string>& groups) {
  if (chart.dots.empty()) return {};
  const LogPlot plot(chart.dots);
  const double total = kSize + 2 * kMargin;
  std::string out = fmt::format("<figure><svg viewBox=\"0 0 {0} {0}\" role=\"img\" aria-label=\"{1}\">\n", total, report::escape_html(chart.title));
  out += fmt::format("<clipPath id=\"c{0}\"><rect x=\"{1}\" y=\"{1}\" width=\"{2}\" height=\"{2}\"/></clipPath>\n", chart.unit, kMargin, kSize);
  for (int decade = plot.first(); decade <= plot.last(); ++decade) {
    const double value = std::pow(10.0, decade);
    out += fmt::format("<path class=\"g\" d=\"M{0:.1f} {2:.1f}V{3:.1f}M{2:.1f} {1:.1f}H{3:.1f}\"/>", plot.x(value), plot.y(value), kMargin,
                       kMargin + kSize);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>", plot.x(value), kMargin + kSize + 16, value);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", kMargin - 5, plot.y(value) + 4, value);
  }
  out += fmt::format("<g clip-path=\"url(#c{})\">", chart.unit);
  out += fmt::format("<polygon class=\"b\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>", plot.x(plot.low()),
                     plot.y(plot.low() * 0.9), plot.x(plot.low()), plot.y(plot.low() * 1.1), plot.x(plot.high()), plot.y(plot.high() * 1.1),
                     plot.x(plot.high()), plot.y(plot.high() * 0.9));
  out += fmt::format("<path class=\"i\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", plot.x(plot.low()), plot.y(plot.low()), plot.x(plot.high()),
                     plot.y(plot.high()));
  for (const Dot& dot : chart.dots)
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" fill=\"{}\"><title>{}</title></circle>\n", plot.x(dot.measured),
                       plot.y(dot.predicted), kColours[dot.group % std::size(kColours)], report::escape_html(dot.title));
  out += "</g>";
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">measured, {}</text>", kMargin + kSize / 2, total - 6, chart.unit);
  out += fmt::format("<text transform=\"translate(11 {:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted, {}</text>", kMargin + kSize / 2, chart.unit);
  out += fmt::format("</svg><figcaption>{}: identity and +-10 % band. ", report::escape_html(chart.title));
  for (std::size_t i = 0; i < groups.size(); ++i)
    out += fmt::format("<span style=\"color:{}\">&#9679;</span> {} ", kColours[i % std::size(kColours)], report::escape_html(groups[i]));
  return out + "</figcaption></figure>\n";
}

constexpr const char* kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1240px;padding:0 1em;color:#1c1c1c}"
    "table{border-collapse:collapse;margin:.5em 0 2em;font-size:13px;display:block;overflow-x:auto}"
    "th,td{padding:2px 8px;text-align:right;border-bottom:1px solid #ddd;vertical-align:top}"
    "th:first-child,td:first-child{text-align:left}td:last-child{max-width:36em}"
    "figure{display:inline-block;width:48%;min-width:340px;margin:0 1% 1em 0}svg{width:100%;background:#fff}"
    "svg text{font-size:12px;fill:#444}.g{stroke:#e4e4e4;fill:none}.i{stroke:#444;fill:none}.b{fill:#0072b2;opacity:.12}";

}  // namespace

std::string validation_html(const ValidationReport& report, int worst) {
  Chart time{"Step time", "s", {}}, memory{"Peak memory", "GiB", {}};
  std::vector<std::string> groups;
  for (const ValidatedRow& row : report.rows) {
    if (!row.time_error() && !row.memory_error()) continue;
    auto group = std::find(groups.begin(), groups.end(), row.device);
    if (group == groups.end()) group = groups.insert(groups.end(), row.device);
    const auto index = static_cast<std::size_t>(group - groups.begin());
    const std::string title = fmt::format("{}:{} {} {}", row.measured.file_name(), row.measured.line, row.measured.model, row.strategy);
    if (row.time_error() && !row.memory_only) time.dots.push_back({*row.measured_step_time_s, *row.predicted_step_time_s, index, title});
    if (row.memory_error()) memory.dots.push_back({*row.measured_peak_mem_gib, *row.predicted_peak_mem_gib, index, title});
  }
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Validation on measured runs</title><style>";
  out += kStyle;
  out += "</style></head><body>\n<h1>Validation on measured runs</h1>\n";
  out += fmt::format("<p>{} rows, {} priced, {} skipped, {} quarantined.</p>\n", report.rows.size(), report.priced, report.skipped,
                     report.quarantined);
  out += chart_svg(time, groups) + chart_svg(memory, groups);
  for (const report::StatisticsTable& table : report::validation_tables(report, worst))
    if (!table.rows.empty()) out += report::to_html(table);
  return out + "</body></html>\n";
}

}  // namespace nd
