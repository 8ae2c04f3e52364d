// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "interrupt.hpp"
#include "modes.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "request.hpp"
#include "what_if.hpp"

namespace run_nd {

namespace {

/// What all searches of a study share: they can be stopped, and have one time limit together.
class Running {
 public:
  Running(const Options& options, const nd::DataStore& data) : options_(options), data_(data), progress_(options) {}

  [[nodiscard]] nd::StudyRow row(std::string name, PreparedSearch prepared) {
    return nd::run_case(case_of(std::move(name), std::move(prepared)), options_.price);
  }
  [[nodiscard]] nd::StudyCase case_of(std::string name, PreparedSearch prepared) {
    auto& options = prepared.options;
    options.tie_band = nd::step_time_band(data_, prepared.scenario);
    options.stop = interrupt_.token();
    options.progress = progress_.callback();
    // What is left of the limit; a search that starts after it ends at once.
    if (options.time_limit) options.time_limit = nd::Seconds{std::max(kLeastSeconds, options.time_limit->value - passed())};
    return {std::move(name), std::move(prepared.scenario), std::move(prepared.space), std::move(options)};
  }
  [[nodiscard]] bool over() const { return interrupt_.token().stop_requested() || (options_.time_limit && passed() >= *options_.time_limit); }
  void quiet() { progress_.clear(); }

 private:
  static constexpr double kLeastSeconds = 1e-3;
  [[nodiscard]] double passed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  const Options& options_;
  const nd::DataStore& data_;
  Interrupt interrupt_;
  Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

nd::StudyRow impossible(const std::string& name, const nd::Error& error) {
  nd::StudyRow row;
  row.name = name;
  for (const auto& one : error.diagnostics)
    if (one.severity == nd::Severity::error && row.problem.empty()) row.problem = one.message + (one.hint.empty() ? "" : " (" + one.hint + ")");
  return row;
}

/// The facts of the request that every row shares.
nd::StudyReport report_of(const PreparedSearch& base, const Options& options) {
  nd::StudyReport out;
  out.file = base.file;
  out.format = base.format;
  out.model = base.scenario.model.name.empty() ? "model" : base.scenario.model.name;
  out.framework = base.scenario.profile.name + " " + base.scenario.profile.version;
  out.defaulted = base.defaulted;
  out.notes = base.notes;
  if (options.tokens) out.study.tokens = options.tokens->value;
  out.study.deadline_days = options.deadline_days;
  return out;
}

/// Files and table; then whether there was an answer.
Exit finish(nd::StudyReport report, const Options& options) {
  bool answered = false;
  for (const auto& row : report.study.rows) {
    answered = answered || row.best.has_value();
    report.study.complete = report.study.complete && row.end == nd::SearchEnd::complete;
  }
  if (report.study.deadline_days) answered = report.study.answer.has_value();
  if (!options.json.empty() && !write_document(nd::study_json(report), options.json)) return Exit::output;
  if (options.verbosity.value_or(2) < 2) {
    report.notes.clear();
    report.defaulted.clear();
  }
  if (talks(options)) {
    std::fputs(nd::study_table(report).c_str(), stdout);
    if (!options.json.empty()) std::printf("wrote %s\n", options.json.c_str());
  }
  if (!stdout_written()) return Exit::output;
  return answered ? Exit::done : Exit::nothing_fits;
}

/// Problems of the words of --what-if that show only when a case is prepared. A case that cannot be is an answer, not a problem.
std::vector<nd::Diagnostic> word_problems(const nd::Error& error) {
  std::vector<nd::Diagnostic> out;
  for (const auto& one : error.diagnostics)
    if (one.where.path == "--what-if") out.push_back(one);
  return out;
}

}  // namespace

Exit run_what_if(const Options& options, const nd::DataStore& data) {
  const auto variants = read_variants(options, data);
  auto base = prepare_search(options, data);
  std::vector<nd::Diagnostic> problems;
  if (!variants) problems = variants.error().diagnostics;
  if (!base) problems.insert(problems.end(), base.error().diagnostics.begin(), base.error().diagnostics.end());
  if (!problems.empty()) return refuse(problems);
  if (const auto conflicts = output_conflicts(options, base->file, {}); !conflicts.empty()) return refuse(conflicts);
  nd::StudyReport report = report_of(*base, options);
  report.study.kind = nd::Study::Kind::what_if;
  // What nobody stated stays as it is in the base, or more than one thing would change.
  const std::int64_t batch = base->scenario.run.global_batch_size;
  Running running(options, data);
  report.study.rows.push_back(running.row("as it stands", std::move(*base)));
  for (const auto& variant : *variants) {
    if (running.over()) {
      report.study.complete = false;
      break;
    }
    Options changed = variant.options;
    if (!changed.global_batch) changed.global_batch = batch;
    auto prepared = prepare_search(changed, data);
    if (!prepared)
      if (const auto wrong = word_problems(prepared.error()); !wrong.empty()) return refuse(wrong);
    report.study.rows.push_back(prepared ? running.row(variant.name, std::move(*prepared)) : impossible(variant.name, prepared.error()));
  }
  running.quiet();
  return finish(std::move(report), options);
}

Exit run_sizes(const Options& options, const nd::DataStore& data) {
  // The batch is that of the smallest cluster: a question about devices changes nothing else.
  auto base = prepare_search(options, data);
  if (!base) return refuse(base.error().diagnostics);
  if (const auto conflicts = output_conflicts(options, base->file, {}); !conflicts.empty()) return refuse(conflicts);
  nd::StudyReport report = report_of(*base, options);
  const std::int64_t batch = base->scenario.run.global_batch_size;
  const nd::ClusterSizes sizes{.least = options.devices->least, .most = options.devices->most, .step = options.devices->step,
                               .node_devices = base->scenario.cluster.device.node_devices};
  Running running(options, data);
  const auto at = [&](std::int64_t devices) -> nd::Result<nd::StudyCase> {
    Options changed = options;
    changed.devices = DeviceCounts{devices, devices, 0};
    if (!changed.global_batch) changed.global_batch = batch;
    auto prepared = prepare_search(changed, data);
    if (!prepared) return prepared.error();
    return running.case_of(std::to_string(devices), std::move(*prepared));
  };
  report.study = nd::size_cluster(std::move(report.study), sizes, {.at = at, .over = [&running] { return running.over(); }}, options.price);
  running.quiet();
  return finish(std::move(report), options);
}

}  // namespace run_nd
