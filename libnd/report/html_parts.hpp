// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nd/perf.hpp"

namespace nd::report {

/// One horizontal bar; `parts` in the order of the chart's.
struct Bar {
  std::string label, value;
  std::vector<double> parts;
};
struct BarChart {
  std::string_view title, unit;
  std::vector<std::string> parts;  ///< names, for the legend
  std::vector<Bar> bars;
  double limit = 0;                ///< drawn as a line; 0 = none
};
/// Stacked bars as a self-contained SVG: legend of the parts that occur, a tooltip per block.
[[nodiscard]] std::string stacked_bars(const BarChart& chart);

struct ScatterPoint {
  double x = 0, y = 0;
  std::string label;    ///< tooltip
  bool marked = false;
};
struct Scatter {
  std::string_view title, x, y;      ///< names of the axes
  std::vector<ScatterPoint> points;  ///< at least one
  double limit = 0;                  ///< vertical line; 0 = none
};
/// Points of two costs as a self-contained SVG; a line joins the points that no other beats in both.
[[nodiscard]] std::string scatter(const Scatter& plot);

/// Text between tags or in an attribute.
[[nodiscard]] std::string escape_html(const std::string& text);

/// "forward compute": what people call a part of a step.
[[nodiscard]] std::string_view part_title(TimePart part);

}  // namespace nd::report
