// SPDX-License-Identifier: Apache-2.0
// One page about a finished search, without links to anything outside it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "nd/ops.hpp"
#include "nd/report.hpp"
#include "report/html_parts.hpp"
#include "report/text_table.hpp"
#include "search/memory_parts.hpp"

namespace nd {

namespace {

using report::Bar;
using report::escape_html;
using report::short_count;
using report::short_seconds;
using report::with_thousands;

constexpr std::size_t kMostRows = 20;

constexpr std::string_view kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1400px;padding:0 1em;color:#1d2430}"
    "h1{font-size:22px;margin-bottom:.2em}h2{font-size:17px;margin:1.8em 0 .3em}p{margin:.3em 0 .8em;max-width:60em}"
    ".lead{font-size:16px}table{border-collapse:collapse;margin:.5em 0;font-size:13px}.wide{overflow-x:auto}"
    "th,td{padding:3px 7px;text-align:right;border-bottom:1px solid #dfe2e8;white-space:nowrap}th{color:#5a6372;font-weight:600}"
    "td:last-child,th:last-child{text-align:left}tr.chosen{background:#eaf1fb;font-weight:600}"
    "dl{display:grid;grid-template-columns:max-content auto;gap:2px 1.2em;margin:.5em 0}dt{color:#5a6372}dd{margin:0}"
    "svg{max-width:none}.note{color:#5a6372;font-size:13px}";

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
  line("search", fmt::format("{} combinations, {} legal, {} fit", with_thousands(stats.enumerated), with_thousands(stats.legal),
                             with_thousands(stats.fitting)));
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

std::string memory_section(const PricedCandidate& candidate) {
  std::vector<Bar> bars;
  for (const auto& stage : candidate.memory.stages) {
    Bar bar{.label = fmt::format("stage {}", stage.stage), .value = fmt::format("{:.1f} GiB", to_gib(stage.reserved)), .parts = {}};
    for (const auto& part : search::kMemoryParts) bar.parts.push_back(to_gib(stage.*part.bytes));
    bar.parts.push_back(to_gib(stage.reserved - stage.allocated));
    bars.push_back(std::move(bar));
  }
  std::vector<std::string> names;
  for (const auto& part : search::kMemoryParts) {
    names.emplace_back(part.name);
    std::replace(names.back().begin(), names.back().end(), '_', ' ');
  }
  names.emplace_back("reserved on top");
  return "<h2>Memory of a device, by pipeline stage</h2><p>Predicted peak, GiB. The red line is the budget; the figure on the right is the whole.</p>" +
         report::stacked_bars({.title = "memory by stage", .unit = "GiB", .parts = names, .bars = bars, .limit = to_gib(candidate.memory.budget)});
}

std::string time_section(const PricedCandidate& candidate) {
  Bar exposed{.label = "exposed", .value = short_seconds(candidate.time.step.value), .parts = {}};
  Bar hidden{.label = "hidden", .value = {}, .parts = {}};
  std::vector<std::string> names;
  double behind = 0;
  const bool seconds = candidate.time.step.value >= 2;
  const double unit = seconds ? 1.0 : 1e3;
  for (std::size_t i = 0; i < kTimePartCount; ++i) {
    names.emplace_back(report::part_title(static_cast<TimePart>(i)));
    exposed.parts.push_back(unit * candidate.time.exposed[i].value);
    hidden.parts.push_back(unit * candidate.time.hidden[i].value);
    behind += candidate.time.hidden[i].value;
  }
  hidden.value = short_seconds(behind);
  return std::string("<h2>Time of a step</h2><p>In ") + (seconds ? "seconds" : "milliseconds") + ". The exposed parts sum to the step; hidden work runs behind something else and costs nothing.</p>" +
         report::stacked_bars({.title = "time of a step", .unit = seconds ? "s" : "ms", .parts = names, .bars = {exposed, hidden}, .limit = 0});
}

/// Micro-batches that a drawing can show: more than fill and drain, a multiple of what the schedules ask for.
int shown_micro_batches(const PipelinePasses& passes) {
  constexpr int kMostPasses = 160;  // of a stage
  const int chunks = schedule_chunks(passes.schedule, passes.shape) * passes.shape.parts;
  const int m = passes.shape.micro_batches, p = passes.shape.stages;
  const int fewer = std::max(4 * p, 8);
  return m * chunks * 2 <= kMostPasses || fewer >= m ? m : fewer;
}

std::string pipeline_section(const SearchReport& report, const PricedCandidate& candidate) {
  PipelinePasses passes = pipeline_passes(report.scenario, candidate.config);
  const int all = passes.shape.micro_batches;
  passes.shape.micro_batches = shown_micro_batches(passes);
  ReplayInput input = passes.input();
  input.timeline = true;
  const ReplayResult replay = replay_schedule(passes.schedule, input);
  if (!replay.ok()) return {};
  const auto info = schedule_info(passes.schedule);
  std::string out = "<h2>The pipeline, pass by pass</h2><p>";
  out += candidate.config.pp == 1
             ? std::string("There is one stage: no pipeline, every device runs the micro-batches one after another.")
             : fmt::format("Schedule {}: each row is a pipeline stage, each block a forward or backward pass of one micro-batch. Grey gaps are waiting. The bubble in the time above is what the busiest stage waits; the others wait longer.",
                           escape_html(std::string(info.title)));
  if (passes.shape.micro_batches != all)
    out += fmt::format(" Drawn with {} of the {} micro-batches; fill and drain look the same, the middle is shorter, so the share of waiting is larger here.",
                       passes.shape.micro_batches, all);
  if (passes.balanced) out += " The trainer moves layers between stages until they cost alike: all stages are drawn equally long.";
  out += "</p><div class=\"wide\">" + timeline_svg(replay, std::string(info.title) + " of rank " + std::to_string(candidate.rank)) + "</div>\n";
  return out;
}

const PricedCandidate* find_rank(const SearchReport& report, std::int64_t rank) {
  for (const auto& candidate : report.result.candidates)
    if (candidate.rank == rank) return &candidate;
  return nullptr;
}

std::string misses_section(const SearchReport& report) {
  std::string out = "<h2>Nothing fits</h2><p>The strategies that come closest:</p><table><tr><th>lacks</th><th>strategy</th><th>would fit with</th></tr>\n";
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
  out += fmt::format("<p class=\"lead\">{}: <b>{} per step</b>, {:.0f} tokens/s per device, {:.1f} of {:.1f} GiB.<br>{}.</p>\n",
                     rank == 1 ? std::string("Best strategy") : fmt::format("Rank {}", rank), short_seconds(candidate->time.step.value),
                     candidate->tokens_per_second, to_gib(candidate->memory.peak().reserved), to_gib(candidate->memory.budget),
                     escape_html(strategy_words(candidate->config)));
  out += request_section(report) + ranking_section(report, rank);
  out += fmt::format("<h1 style=\"margin-top:1.6em\">Rank {} in detail</h1>\n", rank);
  out += time_section(*candidate) + memory_section(*candidate) + pipeline_section(report, *candidate);
  return out + "</body></html>\n";
}

std::string pipeline_trace(const SearchReport& report, const PricedCandidate& candidate) {
  const PipelinePasses passes = pipeline_passes(report.scenario, candidate.config);
  ReplayInput input = passes.input();
  input.timeline = true;
  const ReplayResult replay = replay_schedule(passes.schedule, input);
  ND_CHECK(replay.ok());
  return trace_json(replay, std::string(schedule_title(passes.schedule)) + ": " + to_text(candidate.config));
}

}  // namespace nd
