// SPDX-License-Identifier: Apache-2.0
#include "report/search_html_detail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "report/html_parts.hpp"
#include "report/text_table.hpp"
#include "search/memory_parts.hpp"

namespace nd::report {

namespace {

/// A step as a bar. `unit` turns seconds into what the chart shows.
Bar step_bar(std::string label, const TimeBreakdown& time, double unit) {
  Bar bar{.label = std::move(label), .value = short_seconds(time.step.value), .parts = {}};
  for (const Seconds part : time.exposed) bar.parts.push_back(unit * part.value);
  return bar;
}

/// Others worth a look beside the candidate: the next ones of the ranking that differ by more than a tie, and what needs no search.
std::vector<Bar> other_bars(const SearchReport& report, const PricedCandidate& candidate, double unit) {
  constexpr std::size_t kMostOthers = 3;
  std::vector<Bar> bars;
  double last = candidate.time.step.value;
  for (const auto& other : report.result.candidates) {
    if (bars.size() == kMostOthers) break;
    const bool next = other.rank == candidate.rank + 1;
    if (other.rank <= candidate.rank || (!next && other.time.step.value < last * (1 + report.result.band))) continue;
    bars.push_back(step_bar(fmt::format("rank {}", other.rank), other.time, unit));
    last = other.time.step.value;
  }
  for (const auto& baseline : report.baselines)
    if (baseline.fits()) bars.push_back(step_bar(baseline.kind == Baseline::Kind::stated ? "input's own" : "dp only", baseline.priced->time, unit));
  return bars;
}

/// Micro-batches that a drawing can show: more than fill and drain, a multiple of what the schedules ask for.
int shown_micro_batches(const PipelinePasses& passes) {
  constexpr int kMostPasses = 160;  // of a stage
  const int chunks = schedule_chunks(passes.schedule, passes.shape) * passes.shape.parts;
  const int m = passes.shape.micro_batches, p = passes.shape.stages;
  const int fewer = std::max(4 * p, 8);
  return m * chunks * 2 <= kMostPasses || fewer >= m ? m : fewer;
}

}  // namespace

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
         stacked_bars({.title = "memory by stage", .unit = "GiB", .parts = names, .bars = bars, .limit = to_gib(candidate.memory.budget)});
}

std::string time_section(const SearchReport& report, const PricedCandidate& candidate) {
  const bool seconds = candidate.time.step.value >= 2;
  const double unit = seconds ? 1.0 : 1e3;
  std::vector<Bar> bars{step_bar(fmt::format("rank {}", candidate.rank), candidate.time, unit)};
  Bar hidden{.label = "hidden", .value = {}, .parts = {}};
  std::vector<std::string> names;
  double behind = 0;
  for (std::size_t i = 0; i < kTimePartCount; ++i) {
    names.emplace_back(part_title(static_cast<TimePart>(i)));
    hidden.parts.push_back(unit * candidate.time.hidden[i].value);
    behind += candidate.time.hidden[i].value;
  }
  hidden.value = short_seconds(behind);
  bars.push_back(std::move(hidden));
  for (auto& bar : other_bars(report, candidate, unit)) bars.push_back(std::move(bar));
  return std::string("<h2>Time of a step</h2><p>In ") + (seconds ? "seconds" : "milliseconds") +
         ". The parts sum to the step; hidden work runs behind something else and costs nothing. Below: others for comparison.</p>" +
         stacked_bars({.title = "time of a step", .unit = seconds ? "s" : "ms", .parts = names, .bars = bars, .limit = 0});
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

}  // namespace nd::report
