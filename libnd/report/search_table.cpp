// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "nd/ops.hpp"
#include "nd/report.hpp"
#include "report/strategy_text.hpp"
#include "report/text_table.hpp"
#include "report/why.hpp"

namespace nd {

namespace {

using report::Align;
using report::short_count;
using report::short_seconds;
using report::TextTable;
using report::with_thousands;

/// Degree columns: those that are always shown, and those that some row uses.
std::vector<Dimension> degree_columns(const std::vector<ParallelConfig>& configs) {
  std::vector<Dimension> out{Dimension::dp, Dimension::tp, Dimension::pp};
  for (const auto id : {Dimension::cp, Dimension::ep, Dimension::etp, Dimension::sequence_parallel, Dimension::vpp, Dimension::zero,
                        Dimension::optimizer_shard}) {
    const auto plain = value_of(ParallelConfig{}, id);
    if (std::any_of(configs.begin(), configs.end(), [&](const ParallelConfig& c) { return value_of(c, id) != plain; })) out.push_back(id);
  }
  for (const auto id : {Dimension::micro_batch_size, Dimension::micro_batch_num, Dimension::schedule, Dimension::recompute})
    out.push_back(id);
  return out;
}

std::string title(const SearchReport& report) {
  const auto& scenario = report.scenario;
  const auto count = count_parameters(scenario.model);
  std::string out = fmt::format("{}: {} parameters", scenario.model.name.empty() ? "model" : scenario.model.name,
                                short_count(static_cast<double>(count.total)));
  if (count.active != count.total) out += fmt::format(", {} active", short_count(static_cast<double>(count.active)));
  out += fmt::format("\n{} x {}, {} {}, sequence {}, global batch {}\n", scenario.run.devices, scenario.cluster.device.name,
                     scenario.profile.name, scenario.profile.version, scenario.run.seq_length, scenario.run.global_batch_size);
  return out;
}

std::string counts(const SearchStats& stats) {
  std::string out = fmt::format("{} combinations, {} legal, {} fit", with_thousands(stats.enumerated), with_thousands(stats.legal), with_thousands(stats.fitting));
  if (stats.pruned > 0) out += fmt::format(" besides {} that are provably slower than those shown", with_thousands(stats.pruned));
  out += "\n";
  std::array<std::size_t, kRejectionCount> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&stats](std::size_t a, std::size_t b) { return stats.rejected[a] > stats.rejected[b]; });
  std::string reasons;
  for (const auto index : order)
    if (stats.rejected[index] > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", to_text(static_cast<Rejection>(index)),
                             with_thousands(stats.rejected[index]));
  if (!reasons.empty()) out += "refused: " + reasons + "\n";
  return out;
}

/// "12.3 per step" of an objective that is the step time in another unit; empty for the others.
std::string objective_head(Objective objective) {
  if (objective == Objective::cost) return "cost/step";
  return objective == Objective::energy ? "energy/step" : "";
}

std::string objective_cell(const SearchReport& report, const PricedCandidate& candidate) {
  const double amount = report.objective_per_second.value_or(0) * candidate.time.step.value;
  constexpr double kMegajoule = 1e6;
  return report.objective == Objective::energy ? fmt::format("{:.4g} MJ", amount / kMegajoule) : fmt::format("{:.4g}", amount);
}

std::string ranking(const SearchReport& report, const std::vector<PricedCandidate>& candidates) {
  std::vector<ParallelConfig> configs;
  for (const auto& candidate : candidates) configs.push_back(candidate.config);
  const auto degrees = degree_columns(configs);
  std::vector<TextTable::Column> columns{{"rank", Align::right}};
  for (const auto id : degrees) columns.push_back({std::string(dimension_info(id).name), Align::right});
  for (const char* head : {"memory", "step", "tokens/s/device", "MFU", "gap"}) columns.push_back({head, Align::right});
  const std::string objective = report.objective_per_second ? objective_head(report.objective) : "";
  if (!objective.empty()) columns.push_back({objective, Align::right});
  columns.push_back({"largest part", Align::left});
  TextTable table(columns);
  const double best = report.result.candidates.front().time.step.value;
  bool tie = false, tight = false;
  for (const auto& candidate : candidates) {
    const double gap = candidate.time.step.value / best - 1;
    const bool is_tie = candidate.rank > 1 && std::abs(gap) <= report.result.band;
    const bool is_tight = candidate.memory.fit == Fit::tight;
    tie = tie || is_tie;
    tight = tight || is_tight;
    std::vector<std::string> cells{std::to_string(candidate.rank)};
    for (const auto id : degrees) cells.push_back(value_text(id, value_of(candidate.config, id)));
    cells.push_back(report::memory_cell(candidate.memory) + (is_tight ? "!" : " "));
    cells.push_back(short_seconds(candidate.time.step.value));
    cells.push_back(fmt::format("{:.0f}", candidate.tokens_per_second));
    cells.push_back(candidate.mfu ? fmt::format("{:.1f} %", 100 * *candidate.mfu) : "-");
    cells.push_back(candidate.rank == 1 ? "best " : report::signed_percent(gap) + (is_tie ? "~" : " "));
    if (!objective.empty()) cells.push_back(objective_cell(report, candidate));
    const auto part = candidate.time.bound_by();
    cells.push_back(fmt::format("{} {:.0f} %", to_text(part), 100 * (candidate.time.part(part) / candidate.time.step)));
    table.add(std::move(cells));
  }
  std::string out = table.text();
  if (tie) out += fmt::format("~ within {:.0f} % of the best, the error of the time model: a tie\n", 100 * report.result.band);
  if (tight) out += "! fits by less than the error of the memory model\n";
  return out;
}

/// What the search gains over strategies that need none.
std::string baselines(const SearchReport& report) {
  if (report.baselines.empty()) return {};
  TextTable table({{"for comparison", Align::left}, {"step", Align::right}, {"gap", Align::right}, {"memory", Align::right}, {"strategy", Align::left}});
  std::string rest;
  const auto& best = report.result.candidates.front();
  for (const auto& baseline : report.baselines) {
    const std::string name(report::baseline_title(baseline.kind));
    if (!baseline.priced) {
      table.add({name, "-", "- ", "-", "cannot run: " + baseline.problem});
      continue;
    }
    const auto& priced = *baseline.priced;
    const std::string strategy = report::short_strategy(priced.config);
    if (!baseline.fits()) {
      table.add({name, "-", "- ", "does not fit", strategy});
      rest += name + ": " + report::shortage(priced.memory, baseline.largest_part, baseline.largest) + "\n";
      continue;
    }
    const double gap = priced.time.step / best.time.step - 1;
    const bool same = priced.config == best.config;
    if (gap < 0) rest += name + ": " + std::string(report::kOutsideRequest) + "\n";
    table.add({name, short_seconds(priced.time.step.value), same ? "the best " : report::signed_percent(gap) + (std::abs(gap) <= report.result.band ? "~" : " "),
               report::memory_cell(priced.memory), strategy});
  }
  return "\n" + table.text() + rest;
}

/// -e, -ee, -eee.
std::string additional(const SearchReport& report) {
  if (!report.additional_asked) return {};
  std::string out = fmt::format("\n{} additional candidates, for the dimensions they use\n", report.additional.size());
  return report.additional.empty() ? out : out + ranking(report, report.additional);
}

/// --pareto.
std::string front(const SearchReport& report) {
  const auto& front = report.result.pareto;
  if (front.empty()) return {};
  TextTable table({{"step", Align::right}, {"gap", Align::right}, {"memory", Align::right}, {"strategy", Align::left}});
  for (const auto& one : front)
    table.add({short_seconds(one.time.step.value), report::signed_percent(one.time.step / front.front().time.step - 1), report::memory_cell(one.memory),
               report::short_strategy(one.config)});
  return "\nno other strategy is both faster and smaller than one of these\n" + table.text();
}

std::string why(const SearchReport& report) {
  std::string out;
  for (const auto& line : report::why_first(report)) out += (out.empty() ? "\nwhy rank 1: " : "            ") + line + "\n";
  return out;
}

std::string misses(const SearchReport& report) {
  const auto& list = report.result.near_misses;
  std::vector<ParallelConfig> configs;
  for (const auto& miss : list) configs.push_back(miss.config);
  const auto degrees = degree_columns(configs);
  std::vector<TextTable::Column> columns;
  for (const auto id : degrees) columns.push_back({std::string(dimension_info(id).name), Align::right});
  columns.push_back({"needs", Align::right});
  columns.push_back({"lacks", Align::right});
  columns.push_back({"largest part", Align::left});
  columns.push_back({"would fit with", Align::left});
  TextTable table(columns);
  for (const auto& miss : list) {
    std::vector<std::string> cells;
    for (const auto id : degrees) cells.push_back(value_text(id, value_of(miss.config, id)));
    cells.push_back(fmt::format("{:.1f} of {:.1f} GiB", to_gib(miss.memory.peak().reserved), to_gib(miss.memory.budget)));
    cells.push_back(fmt::format("{:.1f} GiB", to_gib(miss.lacks)));
    cells.push_back(fmt::format("{} {:.1f} GiB on stage {}", miss.largest_part, to_gib(miss.largest), miss.memory.peak().stage));
    cells.push_back(miss.change.empty() ? "none of the single changes tried" : miss.change);
    table.add(std::move(cells));
  }
  return table.text();
}

std::string assumptions(const SearchReport& report) {
  std::string out;
  // What nobody states is not the input's: it is what the trainer does without being told.
  std::string stated, unstated;
  for (const auto& info : dimension_list()) {
    const auto& choice = report.space.of(info.id);
    if (!choice.pinned) continue;
    const bool said = report.scenario.run.origins.contains(std::string(info.field));
    auto& list = said ? stated : unstated;
    list += fmt::format("{}{}={}", list.empty() ? "" : " ", info.name, value_text(info.id, choice.values.front()));
  }
  if (!stated.empty()) out += "not searched, as the input has it: " + stated + "\n";
  if (!unstated.empty()) out += "not searched, nobody states it: " + unstated + "\n";
  if (!report.defaulted.empty()) {
    std::string list;
    for (const auto& name : report.defaulted) {
      const auto field = std::find_if(report.request.begin(), report.request.end(), [&](const RequestField& f) { return f.name == name; });
      std::string value;
      if (field != report.request.end())
        std::visit(
            [&value](const auto& v) {
              if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) value = " = " + v;
              else value = fmt::format(" = {}", v);
            },
            field->value);
      list += (list.empty() ? "" : ", ") + name + value;
    }
    out += "assumed, nobody stated it: " + list + "\n";
  }
  for (const auto& note : report.notes) out += to_text(note) + "\n";
  return out;
}

}  // namespace

std::string search_table(const SearchReport& report) {
  std::string out = title(report) + counts(report.result.stats);
  if (report.result.end != SearchEnd::complete)
    out += fmt::format("INCOMPLETE: {}; what follows is the best of what was seen\n", report.result.end == SearchEnd::stopped ? "stopped" : "the time limit was reached");
  if (report.objective != Objective::time) out += fmt::format("ranked by {}\n", to_text(report.objective));
  out += "\n";
  if (report.result.candidates.empty()) {
    const bool seen_all = report.result.end == SearchEnd::complete;
    out += seen_all ? "Nothing fits." : "Nothing fits of what was looked at before the end; the rest may.";
    out += report.result.near_misses.empty() ? "\n" : " The closest:\n" + misses(report);
    if (seen_all) out += fmt::format("-d {}..{} looks for the smallest cluster that holds it.\n", report.scenario.run.devices, report.scenario.run.devices * 64);
  } else {
    out += ranking(report, report.result.candidates) + additional(report) + front(report);
    if (!report.brief) out += why(report) + baselines(report);
    if (report.balance) out += "\n" + balance_text(*report.balance);
  }
  const std::string assumed = assumptions(report);
  if (!assumed.empty()) out += "\n" + assumed;
  return out;
}

}  // namespace nd
