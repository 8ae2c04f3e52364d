// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "modes.hpp"
#include "output.hpp"
#include "request.hpp"
#include "resolved_files.hpp"

namespace run_nd {

namespace {

/// What --explain asks for.
struct Explain {
  bool wanted = false, file = false;
  std::int64_t rank = 0;
};

nd::Result<Explain> parse_explain(const std::string& text) {
  if (text.empty()) return Explain{};
  if (text == "file") return Explain{.wanted = true, .file = true, .rank = 0};
  Explain out{.wanted = true, .file = false, .rank = 0};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.rank);
  constexpr std::int64_t kMostRank = 1'000'000;
  if (error != std::errc{} || end != text.data() + text.size() || out.rank < 1 || out.rank > kMostRank)
    return nd::Error(usage_error("--explain", "'" + text + "' is no rank", "a rank from 1 on, or file for the strategy that the input states"));
  return out;
}

/// Long searches show on a terminal that they are alive.
class Progress {
 public:
  void operator()(std::int64_t priced) {
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "\rpriced %lld strategies", static_cast<long long>(priced));
  }
  void clear() const {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_ = start_;
  bool shown_ = false;
};

/// The run of one search after it has been prepared.
class SearchMode {
 public:
  SearchMode(const Options& options, PreparedSearch prepared, Explain explain, const nd::DataStore& data)
      : options_(options), prepared_(std::move(prepared)), explain_(explain), data_(data), talks_(talks(options)) {
    report_.step_time_band = nd::step_time_band(data, prepared_.scenario);
  }

  Exit run() {
    if (const auto conflicts = output_conflicts(options_, prepared_.file, resolved_paths(resolved_place())); !conflicts.empty()) return refuse(conflicts);
    if (explain_.file) return explain_stated();
    search();
    if (explain_.rank > static_cast<std::int64_t>(report_.result.candidates.size()) && !report_.result.candidates.empty())
      return refuse({usage_error("--explain", "only " + std::to_string(report_.result.stats.fitting) + " candidates fit")});
    if (!write_files()) return Exit::output;
    print();
    if (!stdout_written()) return Exit::output;
    return report_.result.candidates.empty() ? Exit::nothing_fits : Exit::done;
  }

 private:
  void search() {
    auto options = prepared_.options;
    options.top = std::max(options.top, explain_.rank);
    options.tie_band = report_.step_time_band;
    // A program reads more than a screen shows, unless it was told how much.
    constexpr std::int64_t kDocumentCandidates = 100;
    if (!options_.top && (!options_.json.empty() || !options_.output_dir.empty())) options.top = std::max(options.top, kDocumentCandidates);
    Progress progress;
    if (talks_ && isatty(STDERR_FILENO) != 0) options.progress = [&progress](std::int64_t priced) { progress(priced); };
    report_.result = nd::search_strategies(prepared_.scenario, prepared_.space, options);
    progress.clear();
    report_.scenario = nd::search_scenario(prepared_.scenario, prepared_.space, options);
    report_.space = prepared_.space;
    report_.file = prepared_.file;
    report_.format = prepared_.format;
    report_.request = nd::request_fields(report_.scenario, prepared_.stated);
    report_.defaulted = prepared_.defaulted;
    report_.notes = prepared_.notes;
    report_.all = options_.all;
    report_.timings = options_.timings;
    report_.jobs = options.jobs;
    add_baselines(options);
  }

  void add_baselines(const nd::SearchOptions& options) {
    if (prepared_.stated_is_legal && prepared_.states_strategy) {
      report_.baselines.push_back(nd::stated_baseline(prepared_.scenario, options));
    } else if (prepared_.states_strategy) {
      nd::Baseline stated;
      stated.problem = prepared_.stated_problem;
      report_.baselines.push_back(std::move(stated));
    }
    report_.baselines.push_back(nd::data_parallel_baseline(prepared_.scenario, options));
  }

  Exit explain_stated() {
    if (!prepared_.stated_is_legal)
      return refuse({nd::make_diagnostic(nd::Errc::conflict, {prepared_.file, 0, 0, {}}, "the stated strategy cannot run: " + prepared_.stated_problem,
                                         "leave out --explain file to search")});
    const nd::Scenario stated = nd::stated_scenario(prepared_.scenario, prepared_.options);
    const auto priced = nd::price_strategy(stated, prepared_.scenario.run.strategy);
    if (talks_) std::fputs(nd::explain_strategy(stated, priced).c_str(), stdout);
    return priced.memory.fit == nd::Fit::no ? Exit::nothing_fits : Exit::done;
  }

  bool written(const std::optional<nd::Diagnostic>& problem, const std::string& path) {
    if (problem) {
      refuse({*problem});
      return false;
    }
    files_.push_back(path);
    return true;
  }

  /// As many ranks one by one as -t asks for.
  [[nodiscard]] ResolvedPlace resolved_place() const {
    return {.folder = options_.output_dir, .format = prepared_.format, .file = prepared_.file, .ranks = options_.top.value_or(0)};
  }

  bool write_strategies() {
    auto outcome = write_resolved_files(resolved_place(), report_, data_);
    files_.insert(files_.end(), outcome.written.begin(), outcome.written.end());
    report_.notes.insert(report_.notes.end(), outcome.notes.begin(), outcome.notes.end());
    if (!outcome.problems.empty()) refuse(outcome.problems);
    return outcome.problems.empty();
  }

  bool write_files() {
    if (!write_strategies()) return false;
    std::vector<std::string> csv, json;
    if (!options_.ranking_csv.empty()) csv.push_back(options_.ranking_csv);
    if (!options_.json.empty()) json.push_back(options_.json);
    if (!options_.output_dir.empty()) {
      csv.push_back(options_.output_dir + "/ranking.csv");
      json.push_back(options_.output_dir + "/search.json");
    }
    for (const auto& path : csv)
      if (!written(nd::write_ranking_csv(report_, path), path)) return false;
    if (!write_pages()) return false;
    if (json.empty()) return true;
    const std::string document = nd::search_json(report_);
    for (const auto& path : json) {
      if (!write_document(document, path)) return false;
      if (path != "-") files_.push_back(path);
    }
    return true;
  }

  /// The candidate that --trace and --report are about.
  [[nodiscard]] const nd::PricedCandidate* chosen() const {
    const auto& candidates = report_.result.candidates;
    return candidates.empty() ? nullptr : &candidates[static_cast<std::size_t>(std::max<std::int64_t>(1, explain_.rank)) - 1];
  }

  bool write_pages() {
    std::vector<std::string> pages;
    if (!options_.report.empty()) pages.push_back(options_.report);
    if (!options_.output_dir.empty()) pages.push_back(options_.output_dir + "/report.html");
    const auto* candidate = chosen();
    if (!pages.empty()) {
      const std::string page = nd::search_html(report_, candidate == nullptr ? 0 : candidate->rank);
      for (const auto& path : pages)
        if (!written(nd::write_text_file(path, page), path)) return false;
    }
    // When nothing fits there are no passes to show; the exit status says so.
    if (options_.trace.empty() || candidate == nullptr) return true;
    return written(nd::write_text_file(options_.trace, nd::pipeline_trace(report_, *candidate)), options_.trace);
  }

  void print() {
    if (!talks_) return;
    const auto verbosity = options_.verbosity.value_or(2);
    nd::SearchReport shown = report_;
    const auto top = static_cast<std::size_t>(prepared_.options.top);
    if (shown.result.candidates.size() > top) shown.result.candidates.resize(top);
    if (verbosity < 2) {
      shown.brief = true;
      shown.notes.clear();
      shown.defaulted.clear();
    }
    std::fputs(nd::search_table(shown).c_str(), stdout);
    if (verbosity >= 3) print_examples();
    if (explain_.rank > 0 && !report_.result.candidates.empty()) {
      const auto& candidate = report_.result.candidates[static_cast<std::size_t>(explain_.rank) - 1];
      std::printf("\n%s", nd::explain_strategy(report_.scenario, candidate).c_str());
    }
    for (const auto& file : files_) std::printf("wrote %s\n", file.c_str());
  }

  void print_examples() const {
    std::printf("\nfirst example of each reason:\n");
    for (std::size_t i = 0; i < nd::kRejectionCount; ++i) {
      const auto& example = report_.result.stats.example[i];
      if (!example) continue;
      const auto reason = static_cast<nd::Rejection>(i);
      std::printf("  %s (%s): %s\n", std::string(nd::to_text(reason)).c_str(), std::string(nd::describe(reason)).c_str(),
                  nd::to_text(*example).c_str());
    }
  }

  const Options& options_;
  PreparedSearch prepared_;
  Explain explain_;
  const nd::DataStore& data_;
  nd::SearchReport report_;
  std::vector<std::string> files_;
  bool talks_;
};

}  // namespace

Exit run_search(const Options& options, const nd::DataStore& data) {
  const auto explain = parse_explain(options.explain);
  auto prepared = prepare_search(options, data);
  std::vector<nd::Diagnostic> problems;
  if (!explain) problems = explain.error().diagnostics;
  if (!prepared) problems.insert(problems.end(), prepared.error().diagnostics.begin(), prepared.error().diagnostics.end());
  if (!problems.empty()) return refuse(problems);
  return SearchMode(options, std::move(*prepared), *explain, data).run();
}

}  // namespace run_nd
