// SPDX-License-Identifier: Apache-2.0
#include "report/html_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace nd::report {

namespace {

// Pixels.
constexpr double kLeft = 74, kPlot = 900, kRight = 90, kRow = 20, kGap = 6, kLegendRow = 20, kLegendColumn = 190;
constexpr std::size_t kLegendColumns = 5;
constexpr double kCharacter = 6.4;
/// Neighbours differ in hue and in lightness.
constexpr std::array<const char*, 12> kColours{"#2f67b1", "#267f52", "#7d5fb2", "#d9861e", "#e3b505", "#4aa3b8",
                                               "#c2453d", "#8c564b", "#5d7f99", "#c9ced8", "#3b4250", "#9aa1ad"};

double total(const Bar& bar) { return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0); }

bool occurs(const BarChart& chart, std::size_t part, double visible) {
  return std::any_of(chart.bars.begin(), chart.bars.end(), [&](const Bar& bar) { return bar.parts[part] > visible; });
}

}  // namespace

std::string stacked_bars(const BarChart& chart) {
  double most = chart.limit;
  for (const Bar& bar : chart.bars) most = std::max(most, total(bar));
  if (most <= 0) return {};
  const double scale = kPlot / most;
  std::vector<std::size_t> shown;
  for (std::size_t part = 0; part < chart.parts.size(); ++part)
    if (occurs(chart, part, 1e-4 * most)) shown.push_back(part);
  const double legend = kLegendRow * static_cast<double>((shown.size() + kLegendColumns - 1) / kLegendColumns) + 6;
  const double height = legend + static_cast<double>(chart.bars.size()) * (kRow + kGap) + 6;
  std::string out = fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\" font-size=\"12\" fill=\"#1d2430\">\n",
                                kLeft + kPlot + kRight, height, escape_html(std::string(chart.title)));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double x = static_cast<double>(i % kLegendColumns) * kLegendColumn, y = static_cast<double>(i / kLegendColumns) * kLegendRow;
    out += fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"13\" height=\"13\" fill=\"{}\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x, y + 2,
                       kColours[shown[i] % kColours.size()], x + 18, y + 13, escape_html(chart.parts[shown[i]]));
  }
  for (std::size_t row = 0; row < chart.bars.size(); ++row) {
    const Bar& bar = chart.bars[row];
    const double y = legend + static_cast<double>(row) * (kRow + kGap);
    out += fmt::format("<text x=\"0\" y=\"{:.1f}\">{}</text>", y + 14, escape_html(bar.label));
    double x = kLeft;
    for (const std::size_t part : shown) {
      const double width = bar.parts[part] * scale;
      if (width <= 0) continue;
      const std::string amount = fmt::format("{:.{}f}", bar.parts[part], bar.parts[part] >= 100 ? 0 : bar.parts[part] >= 10 ? 1 : 2);
      out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.6\"><title>{} {} {}</title></rect>",
                         x, y, width, kRow, kColours[part % kColours.size()], escape_html(chart.parts[part]), amount, chart.unit);
      if (width > kCharacter * static_cast<double>(amount.size()) + 6)
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#fff\" pointer-events=\"none\" font-size=\"11\">{}</text>", x + width / 2, y + 14, amount);
      x += width;
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>\n", kLeft + kPlot + 10, y + 14, escape_html(bar.value));
  }
  if (chart.limit > 0)
    out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#c2453d\" stroke-width=\"2\"/>\n", kLeft + chart.limit * scale, legend - 3, height - 4);
  return out + "</svg>\n";
}

std::string_view part_title(TimePart part) {
  constexpr std::array<std::string_view, kTimePartCount> kTitles{
      "forward compute", "backward compute", "recompute",      "tensor-parallel comm.", "context-parallel comm.", "expert-parallel comm.",
      "weight gathers",  "gradient reduce",  "pipeline comm.", "pipeline bubble",       "optimizer",              "other"};
  return kTitles[static_cast<std::size_t>(part)];
}

}  // namespace nd::report
