// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/html_parts.hpp"

namespace nd::report {

namespace {

// Pixels.
constexpr double kLeft = 74, kTop = 10, kWidth = 900, kHeight = 320, kBottom = 44;

/// An axis from `low` to `high`, drawn from `from` to `to`.
struct Axis {
  double low, high, from, to;
  [[nodiscard]] double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
  /// Distance of the ticks: 1, 2 or 5 times a power of ten, about six of them.
  [[nodiscard]] double tick() const {
    const double rough = (high - low) / 6, power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= rough) return factor * power;
    return 10 * power;
  }
};

Axis axis_of(double low, double high, double from, double to) {
  constexpr double kMargin = 0.05;
  const double span = std::max(high - low, 1e-9 * std::max(1.0, std::abs(high)));
  return {low - kMargin * span, high + kMargin * span, from, to};
}

std::string tick_text(double value, double tick) { return fmt::format("{:.{}f}", value, tick >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(tick)))); }

std::string frame(const Axis& x, const Axis& y, const Scatter& plot) {
  std::string out;
  for (double v = std::ceil(x.low / x.tick()) * x.tick(); v <= x.high; v += x.tick())
    out += fmt::format("<path d=\"M{0:.1f} {1:.0f}V{2:.0f}\" stroke=\"#eceef2\"/><text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\">{4}</text>", x.at(v), kTop,
                       kTop + kHeight, kTop + kHeight + 16, tick_text(v, x.tick()));
  for (double v = std::ceil(y.low / y.tick()) * y.tick(); v <= y.high; v += y.tick())
    out += fmt::format("<path d=\"M{0:.0f} {1:.1f}H{2:.0f}\" stroke=\"#eceef2\"/><text x=\"{3:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>", kLeft, y.at(v),
                       kLeft + kWidth, kLeft - 6, y.at(v) + 4, tick_text(v, y.tick()));
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", kLeft + kWidth / 2, kTop + kHeight + 34, escape_html(std::string(plot.x)));
  return out + fmt::format("<text transform=\"translate(14 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", kTop + kHeight / 2, escape_html(std::string(plot.y)));
}

/// The points that no other beats in both, from left to right, as a step line.
std::string front(const Scatter& plot, const Axis& x, const Axis& y) {
  std::vector<std::pair<double, double>> points;
  for (const auto& point : plot.points) points.emplace_back(point.x, point.y);
  std::sort(points.begin(), points.end());
  std::string path;
  double lowest = std::numeric_limits<double>::infinity();
  for (const auto& [px, py] : points) {
    if (py >= lowest) continue;
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x.at(px), y.at(py)) : fmt::format("H{:.1f}V{:.1f}", x.at(px), y.at(py));
    lowest = py;
  }
  return "<path d=\"" + path + "\" fill=\"none\" stroke=\"#267f52\" stroke-width=\"1.6\"/>\n";
}

}  // namespace

std::string scatter(const Scatter& plot) {
  const auto by_x = std::minmax_element(plot.points.begin(), plot.points.end(), [](const ScatterPoint& a, const ScatterPoint& b) { return a.x < b.x; });
  const auto by_y = std::minmax_element(plot.points.begin(), plot.points.end(), [](const ScatterPoint& a, const ScatterPoint& b) { return a.y < b.y; });
  const Axis x = axis_of(by_x.first->x, std::max(by_x.second->x, plot.limit), kLeft, kLeft + kWidth);
  const Axis y = axis_of(by_y.first->y, by_y.second->y, kTop + kHeight, kTop);
  std::string out = fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\" font-size=\"12\" fill=\"#1d2430\">\n",
                                kLeft + kWidth + 20, kTop + kHeight + kBottom, escape_html(std::string(plot.title)));
  out += frame(x, y, plot) + front(plot, x, y);
  for (const auto& point : plot.points)
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"{}\"><title>{}</title></circle>\n", x.at(point.x), y.at(point.y),
                       point.marked ? 6 : 3, point.marked ? "#d9861e" : "#2f67b1", point.marked ? 1.0 : 0.45, escape_html(point.label));
  if (plot.limit > 0) out += fmt::format("<path d=\"M{:.1f} {:.0f}V{:.0f}\" stroke=\"#c2453d\" stroke-width=\"2\"/>\n", x.at(plot.limit), kTop, kTop + kHeight);
  return out + "</svg>\n";
}

}  // namespace nd::report
