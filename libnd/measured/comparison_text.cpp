// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "nd/compare.hpp"
#include "report/text_table.hpp"

namespace nd {

namespace {

using report::Align;
using report::short_seconds;
using report::TextTable;

constexpr std::size_t kMostDetailed = 12;  // configurations whose parts are printed; the rest is in the CSV and the page
constexpr std::size_t kMostSkipped = 20;

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }
std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }
std::string correlation(const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "-"; }

std::vector<const ComparedRun*> by_measured(const Comparison& comparison) {
  std::vector<const ComparedRun*> out;
  for (const ComparedRun& run : comparison.rows)
    if (run.skipped.empty()) out.push_back(&run);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->sample.step < b->sample.step; });
  return out;
}

std::string run_table(const Comparison& comparison, const std::vector<const ComparedRun*>& runs, double memory_factor) {
  const bool memory = std::any_of(runs.begin(), runs.end(), [](const auto* run) { return run->sample.memory.has_value(); });
  const bool trainer = std::any_of(runs.begin(), runs.end(), [](const auto* run) { return run->trainer_time.has_value(); });
  std::vector<TextTable::Column> columns{{"line", Align::right}, {"strategy", Align::left}, {"measured", Align::right}, {"estimated", Align::right}, {"error", Align::right}};
  if (comparison.calibrated) columns.insert(columns.begin() + 3, {"uncalibrated", Align::right});
  if (trainer) columns.push_back({"without profiler", Align::right});
  if (memory)
    for (const char* head : {"memory", "estimated ", "error "}) columns.push_back({head, Align::right});
  TextTable table(columns);
  for (const ComparedRun* run : runs) {
    std::vector<std::string> cells{std::to_string(run->line), run->strategy, short_seconds(run->sample.step)};
    if (comparison.calibrated) cells.push_back(short_seconds(run->sample.estimated_step()));
    cells.push_back(short_seconds(run->estimated));
    cells.push_back(signed_percent(run->estimated / run->sample.step - 1));
    if (trainer) cells.push_back(run->trainer_time ? short_seconds(*run->trainer_time) : "");
    if (memory && run->sample.memory && run->sample.estimated_memory) {
      const double estimate = *run->sample.estimated_memory * memory_factor;
      cells.push_back(fmt::format("{:.1f} GiB", *run->sample.memory));
      cells.push_back(fmt::format("{:.1f} GiB", estimate));
      cells.push_back(signed_percent(estimate / *run->sample.memory - 1));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

bool measures_parts(const Comparison& comparison) {
  return std::any_of(comparison.parts.begin(), comparison.parts.end(), [](const PartAgreement& part) { return part.rows > 0; });
}

std::string part_table(const ComparedRun& run) {
  TextTable table({{"", Align::left}, {"measured", Align::right}, {"share", Align::right}, {"estimated", Align::right}, {"share ", Align::right}, {"difference", Align::right}});
  for (std::size_t p = 0; p < kComparedPartCount; ++p) {
    const auto part = static_cast<ComparedPart>(p);
    const auto measured = run.measured_part(part);
    const double estimated = run.estimated_part(part);
    if (!measured && estimated == 0) continue;
    const double estimated_share = estimated / run.estimated;
    std::vector<std::string> cells{std::string(to_text(part)), "not measured", "", short_seconds(estimated), percent(estimated_share), ""};
    if (measured) {
      const double share = *measured / run.sample.step;
      cells[1] = short_seconds(*measured);
      cells[2] = percent(share);
      cells[5] = signed_percent(estimated_share - share);
    }
    table.add(std::move(cells));
  }
  return table.text("  ");
}

std::string agreement_table(const Comparison& comparison) {
  TextTable table({{"", Align::left}, {"rows", Align::right}, {"mean measured", Align::right}, {"mean estimated", Align::right}, {"share gap", Align::right},
                   {"Pearson", Align::right}, {"Spearman", Align::right}, {"Kendall", Align::right}, {"", Align::left}});
  const auto add = [&table](std::string name, const PartAgreement& part) {
    if (part.rows == 0) return;
    table.add({std::move(name), std::to_string(part.rows), short_seconds(part.mean_measured), short_seconds(part.mean_estimated), percent(part.mean_share_gap),
               correlation(part.pearson), correlation(part.spearman), correlation(part.kendall), part.why_none});
  };
  for (std::size_t p = 0; p < kComparedPartCount; ++p) add(std::string(to_text(static_cast<ComparedPart>(p))), comparison.parts[p]);
  add("step", comparison.total);
  std::string out = table.text();
  if (comparison.share_distance) out += fmt::format("mean Euclidean distance of the shares: {}\n", percent(*comparison.share_distance));
  return out;
}

std::string errors_line(const char* what, const ErrorStatistics& errors) {
  if (errors.n == 0) return {};
  return fmt::format("{}: {} rows, mean error {}, median {}, 90 % within {}, largest {}, bias {}\n", what, errors.n, percent(errors.mean_ape), percent(errors.median_ape),
                     percent(errors.p90_ape), percent(errors.max_ape), signed_percent(errors.bias));
}

std::string problem_lines(const Comparison& comparison) {
  std::string out;
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(kMost, comparison.problems.size()); ++i) {
    const ProblemAgreement& p = comparison.problems[i];
    out += fmt::format("\nranking of {} strategies: {}\n", p.rows, p.problem);
    out += fmt::format("  Pearson {}, Spearman {}, Kendall {}; the first {} in measured order are ranked as measured\n", correlation(p.quality.pearson),
                       correlation(p.quality.spearman), correlation(p.quality.kendall), p.leading);
    out += fmt::format("  of the fastest 1, 3, 5 measured the estimate has {:.0f} %, {:.0f} %, {:.0f} % among its own\n", 100 * p.top_overlap[0], 100 * p.top_overlap[1], 100 * p.top_overlap[2]);
    out += fmt::format("  estimated best {}, measured best {}: following the estimate costs {}\n", p.predicted_best, p.measured_best, percent(p.quality.regret));
  }
  if (comparison.problems.size() > kMost) out += fmt::format("\n{} more problems are in the JSON document\n", comparison.problems.size() - kMost);
  return out;
}

std::string ratio_cells(const RatioFit& fit, const FittedRatio& ratio) {
  if (fit.level == RatioLevel::none && !ratio.signal) return "abstained";
  return ratio.signal ? fmt::format("{:.4f} .. {:.4f}", ratio.low, ratio.high) : "no signal";
}

std::string quality_line(const char* name, const RankingQuality& quality) {
  return fmt::format("  {}: mean error {}, median {}, Pearson {}, Spearman {}, Kendall {}, following the ranking costs {}\n", name, percent(quality.mean_error),
                     percent(quality.median_error), correlation(quality.pearson), correlation(quality.spearman), correlation(quality.kendall), percent(quality.regret));
}

}  // namespace

std::string comparison_text(const Comparison& comparison, int verbosity) {
  const auto runs = by_measured(comparison);
  const double memory_factor = comparison.memory_factor;
  std::string out = fmt::format("{}: {}, {} of {} rows priced{}\n\n", comparison.file, to_text(comparison.kind), runs.size(), comparison.rows.size(),
                                comparison.calibrated ? ", calibrated" : "");
  out += run_table(comparison, runs, memory_factor);
  if (measures_parts(comparison)) {
    for (std::size_t i = 0; i < std::min(runs.size(), kMostDetailed); ++i)
      out += fmt::format("\nline {}, {}: measured {}, estimated {}\n", runs[i]->line, runs[i]->strategy, short_seconds(runs[i]->sample.step), short_seconds(runs[i]->estimated)) +
             part_table(*runs[i]);
    if (runs.size() > kMostDetailed) out += fmt::format("\nparts of {} more rows are in the page and the CSV\n", runs.size() - kMostDetailed);
  }
  out += "\n" + agreement_table(comparison) + "\n";
  out += errors_line("step time", comparison.step) + errors_line("memory", comparison.memory);
  out += problem_lines(comparison);
  std::size_t skipped = 0;
  for (const ComparedRun& run : comparison.rows) {
    if (run.skipped.empty()) continue;
    if (skipped++ == 0) out += "\nnot priced:\n";
    if (skipped <= kMostSkipped) out += fmt::format("  line {}: {}\n", run.line, run.skipped);
  }
  if (skipped > kMostSkipped) out += fmt::format("  and {} more\n", skipped - kMostSkipped);
  for (const Diagnostic& note : comparison.notes)
    if (note.severity != Severity::note || verbosity >= 2) out += to_text(note) + "\n";
  return out;
}

std::string ratio_fit_text(const RatioFit& fit) {
  std::string out = fmt::format("\nratios, measured / estimated ({}, {} rows):\n", fit.from_parts ? "from measured parts" : "from whole steps", fit.rows.size());
  TextTable ratios({{"", Align::left}, {"ratio", Align::right}, {"9 in 10", Align::left}, {"sum / sum", Align::right}, {"rows", Align::right}});
  for (std::size_t key = 0; key < kRatioKeyCount; ++key) {
    const FittedRatio& ratio = fit.ratios[key];
    if (static_cast<RatioKey>(key) == RatioKey::forward) continue;
    ratios.add({std::string(to_text(static_cast<RatioKey>(key))), fmt::format("{:.4e}", ratio.ratio), ratio_cells(fit, ratio), ratio.plain ? fmt::format("{:.4f}", *ratio.plain) : "-", std::to_string(ratio.rows)});
  }
  out += ratios.text("  ") + "\n";
  TextTable rows({{"strategy", Align::left}, {"corrected", Align::right}, {"left out", Align::right}, {"busy", Align::right}, {"error", Align::right}, {"step", Align::right}});
  for (const RatioRow& row : fit.rows)
    rows.add({row.name, short_seconds(row.corrected), row.left_out ? short_seconds(*row.left_out) : "-", short_seconds(row.busy), row.left_out ? signed_percent(*row.left_out / row.busy - 1) : "-", short_seconds(row.step)});
  out += rows.text("  ");
  out += fmt::format("\n  mean error {} without ratios{}\n", percent(fit.error_before), fit.error_left_out ? ", " + percent(*fit.error_left_out) + " left out" : "");
  out += quality_line("before", fit.before) + quality_line("after", fit.after);
  for (const GroupHoldOut& group : fit.devices)
    out += fmt::format("  {} predicted from the other devices: {} rows, mean error {} before, {} after\n", group.group, group.rows, percent(group.error_before), percent(group.error_after));
  for (const std::string& remark : fit.remarks) out += "  " + remark + "\n";
  return out;
}

}  // namespace nd
