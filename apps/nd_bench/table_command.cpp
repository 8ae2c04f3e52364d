// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "commands.hpp"

namespace nd_bench {

namespace {

struct GatherOptions {
  std::vector<std::string> folders;
  std::string raw, benchmarks, steps;
};

Exit gather(const GatherOptions& options) {
  const auto rows = nd::gather_results(options.folders);
  if (!rows) return refuse(Exit::input, rows.error().diagnostics);
  for (const auto& [path, text] : {std::pair{&options.raw, nd::raw_summary_csv(*rows)}, std::pair{&options.benchmarks, nd::benchmarks_csv(*rows)},
                                   std::pair{&options.steps, nd::steps_csv(*rows)}}) {
    if (path->empty()) continue;
    if (text.empty()) {
      std::fprintf(stderr, "warning: %s is not written: no run has what it lists\n", path->c_str());
    } else if (const auto problem = nd::write_text_file(*path, text)) {
      return refuse(Exit::output, {*problem});
    }
  }
  std::size_t good = 0;
  for (const auto& row : *rows) {
    const bool well = nd::succeeded(row.result.status);
    good += well ? 1U : 0U;
    std::printf("%s  %-14s %s", row.plan.id.c_str(), std::string(nd::to_text(row.result.status)).c_str(), row.plan.name.c_str());
    if (well) std::printf("  %.4g s a step\n", row.result.steps.median_s);
    else std::printf("  %s\n", row.result.reason.substr(0, 160).c_str());
  }
  std::printf("%zu of %zu runs measured\n", good, rows->size());
  return Exit::done;
}

struct CompareOptions {
  std::string reference, measured, keys, metrics;
  double threshold = 0;
};

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Exit compare(const CompareOptions& options) {
  auto rule = nd::default_compare_rule();
  if (!options.keys.empty()) rule.keys = words(options.keys);
  if (!options.metrics.empty()) {
    const auto known = std::move(rule.metrics);
    rule.metrics.clear();
    for (auto name : words(options.metrics)) {
      nd::CompareRule::Metric metric;
      const bool higher = name.ends_with(":higher"), lower = name.ends_with(":lower");
      metric.column = higher || lower ? name.substr(0, name.rfind(':')) : name;
      metric.higher_is_better = higher;
      for (const auto& one : known)
        if (one.column == metric.column && !higher && !lower) metric = one;
      rule.metrics.push_back(metric);
    }
  }
  if (options.threshold > 0)
    for (auto& metric : rule.metrics) metric.threshold = options.threshold;
  const auto comparison = nd::compare_tables(options.reference, options.measured, rule);
  if (!comparison) return refuse(Exit::input, comparison.error().diagnostics);
  std::fputs(nd::to_text(*comparison).c_str(), stdout);
  return comparison->regressed() ? Exit::answer_is_no : Exit::done;
}

}  // namespace

std::function<Exit()> add_gather(CLI::App& app) {
  const auto options = std::make_shared<GatherOptions>();
  CLI::App* command = app.add_subcommand("gather", "the runs of campaign folders, and tables of them");
  command->add_option("FOLDER", options->folders, "folders of nd_bench run; of equal runs the later folder's counts")->required();
  command->add_option("--raw", options->raw, "write every run, failed ones too");
  command->add_option("--benchmarks", options->benchmarks, "write the measured runs without constant columns");
  command->add_option("--steps", options->steps, "write the classified CSV for run_nd --real_csv");
  return [options] { return gather(*options); };
}

std::function<Exit()> add_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "a table of runs beside an older one; status 1 when something is worse");
  command->add_option("REFERENCE", options->reference, "older table (raw_summary.csv, benchmarks.csv)")->required();
  command->add_option("MEASURED", options->measured, "newer table")->required();
  command->add_option("--keys", options->keys, "columns that identify a run, separated by commas");
  command->add_option("--metrics", options->metrics, "columns to compare; NAME:higher or NAME:lower says what is better");
  command->add_option("--threshold", options->threshold, "relative difference that is accepted, for every metric")->check(CLI::PositiveNumber);
  return [options] { return compare(*options); };
}

}  // namespace nd_bench
