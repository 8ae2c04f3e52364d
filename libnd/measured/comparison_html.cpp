// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "nd/compare.hpp"
#include "report/html_parts.hpp"

namespace nd {

namespace {

using report::escape_html;

constexpr std::string_view kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1250px;padding:0 1em;color:#1d2430}"
    "h1{font-size:22px;margin-bottom:.2em}h2{font-size:17px;margin:1.8em 0 .3em}p{margin:.3em 0 .8em;max-width:60em}"
    ".lead{font-size:16px}pre{font:12.5px/1.4 ui-monospace,monospace;overflow-x:auto;background:#f6f7f9;padding:.8em;border-radius:4px}"
    ".wide{overflow-x:auto}svg{max-width:none}.note{color:#5a6372;font-size:13px}";

std::string lead(const Comparison& comparison) {
  std::string devices;
  for (const auto& name : comparison.devices) devices += (devices.empty() ? "" : ", ") + name;
  return fmt::format("{} of {} rows of {} priced, on {}. The {}estimate of a step is {:.1f} % off in the mean, {:.1f} % in the median; nine in ten are within {:.1f} %.", comparison.priced(),
                     comparison.rows.size(), comparison.file, devices, comparison.calibrated ? "calibrated " : "", 100 * comparison.step.mean_ape, 100 * comparison.step.median_ape,
                     100 * comparison.step.p90_ape);
}

}  // namespace

std::string comparison_html(const Comparison& comparison, const RatioFit* fit) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Measured and estimated</title>\n<style>" + std::string(kStyle) + "</style></head><body>\n";
  out += "<h1>Measured runs beside their estimates</h1>\n<p class=\"lead\">" + escape_html(lead(comparison)) + "</p>\n";
  for (const ComparisonChart& chart : comparison_charts(comparison))
    out += "<h2>" + escape_html(chart.title) + "</h2>\n<div class=\"wide\">" + chart.svg + "</div>\n";
  if (fit != nullptr) out += "<h2>Ratios</h2>\n<pre>" + escape_html(ratio_fit_text(*fit)) + "</pre>\n";
  out += "<h2>Figures</h2>\n<pre>" + escape_html(comparison_text(comparison)) + "</pre>\n";
  const auto& print = comparison.fingerprint;
  out += fmt::format("<p class=\"note\">Fingerprint: model {}, device {}, framework {}, calibration {}, version {}</p>\n", print.model, print.device, print.framework, print.calibration, print.version);
  return out + "</body></html>\n";
}

}  // namespace nd
