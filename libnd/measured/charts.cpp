// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "measured/axis.hpp"
#include "nd/compare.hpp"
#include "report/html_parts.hpp"
#include "report/text_table.hpp"

namespace nd {

namespace {

using measured::Axis;
using measured::tick_text;
using report::escape_html;
using report::short_seconds;

/// By compared part, then what a table without parts has; distinguishable without telling red from green (Okabe-Ito, and greys).
constexpr std::array<const char*, kComparedPartCount> kPartColours{"#0072b2", "#e69f00", "#56b4e9", "#cc79a7", "#8a7f00", "#d55e00", "#b9bec8"};
constexpr std::array<const char*, 8> kGroupColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#555555"};
constexpr const char* kWhole = "#5a6372";
constexpr std::array<std::string_view, kComparedPartCount> kTitles{"compute", "data parallel", "tensor parallel", "expert parallel", "context parallel", "pipeline and bubble", "idle, other"};
constexpr std::size_t kMostBars = 60;
constexpr double kBand = 0.1;  // drawn around the identity

std::string open(double width, double height, std::string_view title) {
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\" "
                     "font-family=\"system-ui,sans-serif\" font-size=\"12\" fill=\"#1d2430\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
                     width, height, escape_html(std::string(title)));
}

std::string text(double x, double y, std::string_view words, std::string_view attributes = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escape_html(std::string(words)));
}

std::string block(double x, double y, double width, double height, std::string_view colour, std::string_view tip) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.5\"><title>{}</title></rect>\n", x, y, width, height,
                     colour, escape_html(std::string(tip)));
}

std::vector<const ComparedRun*> by_measured(const Comparison& comparison) {
  std::vector<const ComparedRun*> out;
  for (const ComparedRun& run : comparison.rows)
    if (run.skipped.empty()) out.push_back(&run);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->sample.step < b->sample.step; });
  return out;
}

bool has_parts(const ComparedRun& run) { return run.measured_part(ComparedPart::compute).has_value(); }

/// Two bars of one configuration.
class PairedBars {
 public:
  explicit PairedBars(std::vector<const ComparedRun*> runs) : runs_(std::move(runs)) {
    left_out_ = runs_.size() > kMostBars ? runs_.size() - kMostBars : 0;
    runs_.resize(runs_.size() - left_out_);
    for (const ComparedRun* run : runs_) {
      most_ = std::max({most_, run->sample.step, run->estimated});
      label_ = std::max(label_, kCharacter * static_cast<double>(std::min<std::size_t>(run->strategy.size(), kLongestLabel)));
    }
  }

  [[nodiscard]] std::string svg() const {
    const double left = label_ + kBarName, height = kHead + kPair * static_cast<double>(runs_.size()) + kFoot;
    const Axis axis = scale(left);
    std::string out = open(left + kPlot + kRight, height, "Measured and estimated step time of every configuration");
    out += legend();
    for (const double tick : axis.ticks()) {
      if (tick < 0) continue;
      out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#e6e9ee\"/>\n", axis.at(tick), kHead - 6, height - kFoot);
      out += text(axis.at(tick), height - kFoot + 16, tick_text(tick), "text-anchor=\"middle\" fill=\"#5a6372\"");
    }
    out += text(left + kPlot / 2, height - 4, "seconds per step, fastest measured first", "text-anchor=\"middle\" fill=\"#5a6372\"");
    for (std::size_t i = 0; i < runs_.size(); ++i) out += pair(*runs_[i], kHead + kPair * static_cast<double>(i), axis);
    if (left_out_ > 0) out += text(left, kHead - 10, fmt::format("{} slower configurations are not drawn", left_out_), "fill=\"#5a6372\"");
    return out + "</svg>\n";
  }

 private:
  static constexpr double kPlot = 760, kRight = 80, kHead = 52, kFoot = 40, kBar = 13, kPair = 36, kBarName = 70, kCharacter = 6.6;
  static constexpr std::size_t kLongestLabel = 44;

  [[nodiscard]] Axis scale(double left) const {
    // Bars start at zero whatever the spread.
    Axis axis = Axis::around_zero(most_, {left - kPlot, left + kPlot});
    return axis;
  }

  static std::string legend() {
    std::string out;
    double x = 4;
    for (std::size_t p = 0; p < kComparedPartCount; ++p) {
      out += block(x, 6, 13, 13, kPartColours[p], kTitles[p]) + text(x + 18, 17, kTitles[p]);
      x += 34 + kCharacter * static_cast<double>(kTitles[p].size());
    }
    return out + block(x, 6, 13, 13, kWhole, "whole step") + text(x + 18, 17, "whole step (parts not measured)");
  }

  static std::string pair(const ComparedRun& run, double y, const Axis& axis) {
    const double zero = axis.at(0);
    std::string label = run.strategy.substr(0, kLongestLabel);
    if (label.size() < run.strategy.size()) label.replace(label.size() - 3, 3, "...");
    std::string out = text(2, y + kBar + 5, label);
    out += text(zero - 5, y + 11, "measured", "text-anchor=\"end\" fill=\"#5a6372\" font-size=\"11\"");
    out += text(zero - 5, y + 11 + kBar + 2, "estimated", "text-anchor=\"end\" fill=\"#5a6372\" font-size=\"11\"");
    double x = zero, x2 = zero;
    if (!has_parts(run)) out += block(zero, y, axis.at(run.sample.step) - zero, kBar, kWhole, "measured " + short_seconds(run.sample.step));
    for (std::size_t p = 0; p < kComparedPartCount; ++p) {
      const auto part = static_cast<ComparedPart>(p);
      const auto add = [&](double& from, double seconds, double top, const char* side) {
        if (seconds <= 0) return;
        const double width = axis.at(seconds) - zero;
        out += block(from, top, width, kBar, kPartColours[p], fmt::format("{} {}: {}", side, kTitles[p], short_seconds(seconds)));
        from += width;
      };
      if (has_parts(run)) add(x, run.measured_part(part).value_or(0), y, "measured");
      add(x2, run.estimated_part(part), y + kBar + 2, "estimated");
    }
    const double end = std::max(axis.at(run.sample.step), axis.at(run.estimated));
    out += text(end + 6, y + kBar + 5, fmt::format("{:+.1f} %", 100 * (run.estimated / run.sample.step - 1)), "font-weight=\"600\"");
    return out;
  }

  std::vector<const ComparedRun*> runs_;
  std::size_t left_out_ = 0;
  double most_ = 0, label_ = 0;
};

std::string scatter(const Comparison& comparison, const std::vector<const ComparedRun*>& runs) {
  constexpr double kSize = 470, kLeft = 70, kTop = 18, kBottom = 46, kSide = 240;
  double least = runs.front()->sample.step, most = 0;
  for (const ComparedRun* run : runs) {
    least = std::min({least, run->sample.step, run->estimated});
    most = std::max({most, run->sample.step, run->estimated});
  }
  const Axis x = Axis::positive(least, most, {kLeft, kLeft + kSize}), y = Axis::positive(least, most, {kTop + kSize, kTop});
  std::string out = open(kLeft + kSize + kSide, kTop + kSize + kBottom, "Estimated against measured step time");
  for (const double tick : x.ticks()) {
    out += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\" stroke=\"#e6e9ee\"/>\n", x.at(tick), kTop, kTop + kSize, kLeft, y.at(tick), kLeft + kSize);
    out += text(x.at(tick), kTop + kSize + 16, tick_text(tick), "text-anchor=\"middle\" fill=\"#5a6372\"");
    out += text(kLeft - 6, y.at(tick) + 4, tick_text(tick), "text-anchor=\"end\" fill=\"#5a6372\"");
  }
  // The band is a fan on straight axes and a strip on logarithmic ones; many short pieces draw both.
  const std::string clip = fmt::format("<clipPath id=\"plot\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", kLeft, kTop, kSize, kSize);
  std::string upper, lower;
  constexpr int kPieces = 40;
  for (int i = 0; i <= kPieces; ++i) {
    const double value = x.low() + (x.high() - x.low()) * i / kPieces;
    upper += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x.at(value), y.at(value * (1 + kBand)));
    lower = fmt::format("L{:.1f} {:.1f}", x.at(value), y.at(value * (1 - kBand))) + lower;
  }
  out += clip + fmt::format("<g clip-path=\"url(#plot)\"><path d=\"{}{}Z\" fill=\"#0072b2\" fill-opacity=\"0.1\"/>\n", upper, lower);
  out += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#5a6372\" stroke-dasharray=\"5 4\"/></g>\n", x.at(x.low()), y.at(x.low()), x.at(x.high()), y.at(x.high()));
  for (const ComparedRun* run : runs) {
    const auto group = static_cast<std::size_t>(std::find(comparison.devices.begin(), comparison.devices.end(), run->device) - comparison.devices.begin());
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" fill-opacity=\"0.75\"><title>{}</title></circle>\n", x.at(run->sample.step), y.at(run->estimated),
                       kGroupColours[group % kGroupColours.size()],
                       escape_html(fmt::format("line {}, {}: measured {}, estimated {} ({:+.1f} %)", run->line, run->strategy, short_seconds(run->sample.step), short_seconds(run->estimated),
                                               100 * (run->estimated / run->sample.step - 1))));
  }
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#9aa1ad\"/>\n", kLeft, kTop, kSize, kSize);
  out += text(kLeft + kSize / 2, kTop + kSize + 38, "measured, seconds per step", "text-anchor=\"middle\"");
  out += text(0, 0, "estimated, seconds per step", fmt::format("text-anchor=\"middle\" transform=\"translate(16 {}) rotate(-90)\"", kTop + kSize / 2));
  double key = kTop + 12;
  for (std::size_t i = 0; i < comparison.devices.size(); ++i, key += 20)
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"/>\n", kLeft + kSize + 18, key - 4, kGroupColours[i % kGroupColours.size()]) + text(kLeft + kSize + 30, key, comparison.devices[i]);
  out += text(kLeft + kSize + 12, key + 6, "- - -  estimated = measured", "fill=\"#5a6372\"") + text(kLeft + kSize + 12, key + 24, "shaded: within 10 %", "fill=\"#5a6372\"");
  return out + "</svg>\n";
}

std::string residuals(const std::vector<const ComparedRun*>& runs) {
  constexpr double kPlot = 720, kLeft = 150, kTop = 14, kStrip = 40, kBottom = 46;
  struct Strip {
    std::string title;
    const char* colour;
    std::vector<std::pair<double, const ComparedRun*>> dots;
  };
  std::vector<Strip> strips;
  double most = 0;
  const auto add = [&](std::string title, const char* colour, const auto& residual) {
    Strip strip{std::move(title), colour, {}};
    for (const ComparedRun* run : runs)
      if (const auto value = residual(*run)) {
        strip.dots.emplace_back(*value, run);
        most = std::max(most, std::abs(*value));
      }
    if (!strip.dots.empty()) strips.push_back(std::move(strip));
  };
  for (std::size_t p = 0; p < kComparedPartCount; ++p) {
    const auto part = static_cast<ComparedPart>(p);
    add(std::string(kTitles[p]), kPartColours[p], [part](const ComparedRun& run) -> std::optional<double> {
      const auto measured = run.measured_part(part);
      if (!measured || (*measured == 0 && run.estimated_part(part) == 0)) return std::nullopt;
      return (run.estimated_part(part) - *measured) / run.sample.step;
    });
  }
  add("whole step", kWhole, [](const ComparedRun& run) { return std::optional<double>(run.estimated / run.sample.step - 1); });
  const double height = kTop + kStrip * static_cast<double>(strips.size()) + kBottom;
  const Axis x = Axis::around_zero(100 * most, {kLeft, kLeft + kPlot});
  std::string out = open(kLeft + kPlot + 24, height, "Estimated minus measured, per part");
  for (const double tick : x.ticks()) {
    out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"{}\"/>\n", x.at(tick), kTop, height - kBottom, tick == 0 ? "#5a6372" : "#e6e9ee");
    out += text(x.at(tick), height - kBottom + 16, tick_text(tick), "text-anchor=\"middle\" fill=\"#5a6372\"");
  }
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const double y = kTop + kStrip * (static_cast<double>(i) + 0.5);
    out += text(kLeft - 10, y + 4, strips[i].title, "text-anchor=\"end\"");
    for (std::size_t d = 0; d < strips[i].dots.size(); ++d) {
      const auto& [value, run] = strips[i].dots[d];
      // Spread over the strip so that equal values do not hide each other; by position, so that every run draws the same.
      const double shift = (static_cast<double>((d * 7) % 11) - 5) * 2.4;
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" fill-opacity=\"0.7\"><title>{}</title></circle>\n", x.at(100 * value), y + shift, strips[i].colour,
                         escape_html(fmt::format("line {}, {}: {:+.1f} % of the step", run->line, run->strategy, 100 * value)));
    }
  }
  out += text(kLeft + kPlot / 2, height - 6, "estimated - measured, per cent of the measured step", "text-anchor=\"middle\" fill=\"#5a6372\"");
  return out + "</svg>\n";
}

}  // namespace

std::vector<ComparisonChart> comparison_charts(const Comparison& comparison) {
  const auto runs = by_measured(comparison);
  if (runs.empty()) return {};
  return {{"bars", "Measured and estimated step of every configuration", PairedBars(runs).svg()},
          {"scatter", "Estimated against measured", scatter(comparison, runs)},
          {"residuals", "Residuals per part", residuals(runs)}};
}

}  // namespace nd
