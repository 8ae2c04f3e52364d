// SPDX-License-Identifier: Apache-2.0
// One page about a finished search, without links to anything outside it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "nd/ops.hpp"
#include "nd/report.hpp"
#include "report/html_parts.hpp"
#include "report/search_html_detail.hpp"
#include "report/strategy_text.hpp"
#include "report/text_table.hpp"
#include "report/why.hpp"

namespace nd {

namespace {

using report::escape_html;
using report::short_count;
using report::short_seconds;
using report::with_thousands;

constexpr std::size_t kMostRows = 20;

constexpr std::string_view kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1260px;padding:0 1em;color:#1d2430}"
    "h1{font-size:22px;margin-bottom:.2em}h2{font-size:17px;margin:1.8em 0 .3em}p{margin:.3em 0 .8em;max-width:60em}"
    "table{border-collapse:collapse;margin:.5em 0;font-size:13px}.wide{overflow-x:auto}"
    "th,td{padding:3px 7px;text-align:right;border-bottom:1px solid #dfe2e8;white-space:nowrap}th{color:#5a6372;font-weight:600}"
    "td:last-child,th:last-child{text-align:left}tr.chosen{background:#eaf1fb;font-weight:600}td.left,th.left{text-align:left}"
    "dl{display:grid;grid-template-columns:max-content auto;gap:2px 1.2em;margin:.5em 0}dt{color:#5a6372}dd{margin:0}"
    "svg{max-width:none}.note{color:#5a6372;font-size:13px}"
    ".answer{border:1px solid #c9d6ea;background:#f4f8fd;border-radius:6px;padding:.8em 1.2em;margin:1em 0}"
    ".figures{display:flex;flex-wrap:wrap;gap:.4em 2.6em;margin:.2em 0 .7em}.figures b{display:block;font-size:22px}.figures span{color:#5a6372;font-size:12px}"
    ".chip{display:inline-block;background:#fff;border:1px solid #c9d6ea;border-radius:4px;padding:1px 8px;margin:2px 4px 2px 0}.chip b{font-weight:600}"
    "ul{margin:.3em 0 .8em;padding-left:1.3em;max-width:64em}li{margin:.2em 0}";

std::string strategy_words(const ParallelConfig& config) {
  std::string out;
  for (const auto& info : dimension_list()) {
    const auto value = value_of(config, info.id);
    const bool always = info.id == Dimension::micro_batch_size || info.id == Dimension::micro_batch_num;
    if (always || value != value_of(ParallelConfig{}, info.id))
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", info.title, value_text(info.id, value));
  }
  return out;
}

/// The answer in one box: what a step takes, what it needs, how the model is split.
std::string answer_section(const SearchReport& report, const PricedCandidate& candidate) {
  const auto& memory = candidate.memory;
  const auto figure = [](const std::string& value, std::string_view what) { return "<div><b>" + value + "</b><span>" + std::string(what) + "</span></div>"; };
  std::string out = "<div class=\"answer\"><div class=\"figures\">" + figure(short_seconds(candidate.time.step.value), "per step") +
                    figure(with_thousands(std::llround(candidate.tokens_per_second)), "tokens/s per device");
  if (candidate.mfu) out += figure(fmt::format("{:.1f} %", 100 * *candidate.mfu), "of the peak (MFU)");
  out += figure(fmt::format("{:.1f} of {:.1f} GiB", to_gib(memory.peak().reserved), to_gib(memory.budget)),
                memory.fit == Fit::tight ? "per device: fits, by less than the model's error" : "per device");
  out += figure(fmt::format("&plusmn;{:.0f} %", 100 * report.step_time_band), "nine in ten measured steps are this close") + "</div>";
  for (const auto id : report::reading_order()) {
    const auto info = dimension_info(id);
    const auto value = value_of(candidate.config, info.id);
    const bool always = info.id == Dimension::dp || info.id == Dimension::micro_batch_size || info.id == Dimension::micro_batch_num;
    if (!always && value == value_of(ParallelConfig{}, info.id)) continue;
    out += fmt::format("<span class=\"chip\">{} <b>{}</b></span>", escape_html(std::string(info.title)), value_text(info.id, value));
  }
  return out + "</div>\n";
}

std::string why_section(const SearchReport& report) {
  std::string out = "<h2>Why rank 1</h2><ul>";
  for (auto line : report::why_first(report)) {
    line.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(line.front())));
    out += "<li>" + escape_html(line) + ".</li>";
  }
  return out + "</ul>\n";
}

std::string baseline_section(const SearchReport& report) {
  if (report.baselines.empty()) return {};
  std::string out = "<h2>What the search gains</h2><table><tr><th class=\"left\">without a search</th><th>step</th><th>gap</th><th>memory</th><th>strategy</th></tr>\n";
  const double best = report.result.candidates.front().time.step.value;
  bool outside = false;
  for (const auto& baseline : report.baselines) {
    const std::string name(report::baseline_title(baseline.kind));
    if (!baseline.priced) {
      out += fmt::format("<tr><td class=\"left\">{}</td><td>-</td><td>-</td><td>-</td><td>cannot run: {}</td></tr>\n", name, escape_html(baseline.problem));
      continue;
    }
    const auto& priced = *baseline.priced;
    const std::string strategy = escape_html(report::short_strategy(priced.config));
    if (!baseline.fits()) {
      out += fmt::format("<tr><td class=\"left\">{}</td><td>-</td><td>-</td><td>does not fit</td><td>{}; {}</td></tr>\n", name, strategy,
                         escape_html(report::shortage(priced.memory, baseline.largest_part, baseline.largest)));
      continue;
    }
    out += fmt::format("<tr><td class=\"left\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", name, short_seconds(priced.time.step.value),
                       report::signed_percent(priced.time.step.value / best - 1), report::memory_cell(priced.memory), strategy);
    outside = outside || priced.time.step.value < best;
  }
  out += "</table>\n";
  if (outside) out += "<p class=\"note\">A negative gap: " + std::string(report::kOutsideRequest) + ".</p>\n";
  return out;
}

/// Step time against memory of what is known of the ranking.
std::string trade_section(const SearchReport& report, const PricedCandidate& chosen) {
  report::Scatter plot{.title = "step time against memory", .x = "memory per device, GiB", .y = "step, s", .points = {}, .limit = to_gib(report.result.budget)};
  const auto& ranking = report.result.ranking;
  for (std::size_t i = 0; i < std::min(ranking.size(), kPlottedStrategies); ++i)
    plot.points.push_back({.x = to_gib(ranking[i].peak), .y = ranking[i].step.value, .label = fmt::format("rank {}: {}", i + 1, report::short_strategy(ranking[i].config)),
                           .marked = ranking[i].config == chosen.config});
  if (plot.points.size() < 3) return {};
  return fmt::format("<h2>Time against memory</h2><p>The {} fastest that fit, one point each. The line joins those that nothing beats in both; the red line is the "
                     "budget. A point that is hardly slower and needs much less memory leaves room for longer sequences.</p>", with_thousands(static_cast<long long>(plot.points.size()))) +
         report::scatter(plot);
}

std::string request_section(const SearchReport& report) {
  const auto& scenario = report.scenario;
  const auto count = count_parameters(scenario.model);
  std::string model = fmt::format("{}, {} parameters", scenario.model.name.empty() ? "model" : scenario.model.name,
                                  short_count(static_cast<double>(count.total)));
  if (count.active != count.total) model += fmt::format(" ({} active)", short_count(static_cast<double>(count.active)));
  std::string out = "<h2>What was asked</h2><dl>";
  const auto line = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", escape_html(std::string(name)), escape_html(std::string(value)));
  };
  line("input", report.file + (report.format.empty() ? "" : " (" + report.format + ")"));
  line("model", model);
  line("devices", fmt::format("{} x {}", scenario.run.devices, scenario.cluster.device.title));
  line("framework", fmt::format("{}: {} {}", scenario.profile.title, scenario.profile.name, scenario.profile.version));
  line("step", fmt::format("{} sequences of {} tokens", with_thousands(scenario.run.global_batch_size), with_thousands(scenario.run.seq_length)));
  line("memory budget", fmt::format("{:.1f} GiB per device", to_gib(report.result.budget)));
  const auto& stats = report.result.stats;
  std::string search = fmt::format("{} combinations, {} legal, {} fit", with_thousands(stats.enumerated), with_thousands(stats.legal), with_thousands(stats.fitting));
  if (stats.pruned > 0) search += fmt::format(", {} provably slower than those shown", with_thousands(stats.pruned));
  if (report.result.end != SearchEnd::complete) search += "; INCOMPLETE, stopped or out of time";
  line("search", search);
  if (!report.defaulted.empty()) {
    std::string list;
    for (const auto& name : report.defaulted) list += (list.empty() ? "" : ", ") + name;
    line("assumed", list);
  }
  return out + "</dl>\n";
}

std::string ranking_section(const SearchReport& report, std::int64_t chosen) {
  std::string out =
      "<h2>Best strategies</h2><p>Ordered by predicted step time. A gap inside the error of the time model is marked ~: a tie. "
      "Memory is the predicted peak of the fullest device.</p><div class=\"wide\"><table><tr><th>rank</th>";
  constexpr std::array kColumns{Dimension::dp,  Dimension::tp,   Dimension::pp,              Dimension::cp,
                                Dimension::ep,  Dimension::vpp,  Dimension::zero,            Dimension::micro_batch_size,
                                Dimension::micro_batch_num, Dimension::schedule, Dimension::recompute};
  for (const auto id : kColumns) out += fmt::format("<th title=\"{}\">{}</th>", escape_html(std::string(dimension_info(id).title)), dimension_info(id).name);
  out += "<th>memory</th><th>step</th><th>tokens/s/device</th><th>MFU</th><th>gap</th><th>most time</th></tr>\n";
  const auto& candidates = report.result.candidates;
  const double best = candidates.front().time.step.value;
  for (std::size_t i = 0; i < std::min(candidates.size(), kMostRows); ++i) {
    const auto& c = candidates[i];
    out += fmt::format("<tr{}><td>{}</td>", c.rank == chosen ? " class=\"chosen\"" : "", c.rank);
    for (const auto id : kColumns) out += "<td>" + value_text(id, value_of(c.config, id)) + "</td>";
    const double gap = c.time.step.value / best - 1;
    const auto part = c.time.bound_by();
    out += fmt::format("<td>{:.1f} GiB{}</td><td>{}</td><td>{:.0f}</td><td>{}</td><td>{}</td><td>{} {:.0f} %</td></tr>\n",
                       to_gib(c.memory.peak().reserved), c.memory.fit == Fit::tight ? " !" : "", short_seconds(c.time.step.value),
                       c.tokens_per_second, c.mfu ? fmt::format("{:.1f} %", 100 * *c.mfu) : "-",
                       c.rank == 1 ? "best" : fmt::format("+{:.1f} %{}", 100 * gap, gap <= report.result.band ? " ~" : ""),
                       report::part_title(part), 100 * (c.time.part(part) / c.time.step));
  }
  return out + "</table></div>\n";
}

const PricedCandidate* find_rank(const SearchReport& report, std::int64_t rank) {
  for (const auto& candidate : report.result.candidates)
    if (candidate.rank == rank) return &candidate;
  return nullptr;
}

std::string misses_section(const SearchReport& report) {
  const char* const title = report.result.end == SearchEnd::complete ? "Nothing fits" : "Nothing fits of what was looked at before the end";
  std::string out = fmt::format("<h2>{}</h2>", title) + "<p>The strategies that come closest:</p><table><tr><th>lacks</th><th>strategy</th><th>would fit with</th></tr>\n";
  for (const auto& miss : report.result.near_misses)
    out += fmt::format("<tr><td>{:.1f} GiB</td><td>{}</td><td>{}</td></tr>\n", to_gib(miss.lacks), escape_html(strategy_words(miss.config)),
                       escape_html(miss.change.empty() ? "none of the single changes tried" : miss.change));
  return out + "</table>\n";
}

}  // namespace

std::string search_html(const SearchReport& report, std::int64_t rank) {
  const std::string name = report.scenario.model.name.empty() ? "model" : report.scenario.model.name;
  const std::string title = fmt::format("{} on {} x {}", name, report.scenario.run.devices, report.scenario.cluster.device.name);
  std::string out = fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n",
                                escape_html(title), kStyle);
  const auto* candidate = find_rank(report, rank);
  if (candidate == nullptr) return out + request_section(report) + misses_section(report) + "</body></html>\n";
  if (rank != 1) out += fmt::format("<p>Rank {} of the ranking below.</p>\n", rank);
  out += answer_section(report, *candidate) + why_section(report) + baseline_section(report) + ranking_section(report, rank) + trade_section(report, *candidate);
  out += fmt::format("<h1 style=\"margin-top:1.6em\">Rank {} in detail</h1>\n", rank);
  out += report::time_section(report, *candidate) + report::memory_section(*candidate) + report::pipeline_section(report, *candidate) + request_section(report);
  return out + "</body></html>\n";
}

}  // namespace nd
