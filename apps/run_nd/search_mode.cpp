// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "modes.hpp"
#include "nd/output_check.hpp"
#include "request.hpp"

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

/// Outputs that are compared with each other as files before the search.
constexpr std::size_t kMostOutputs = 16;

/// The run of one search after it has been prepared.
class SearchMode {
 public:
  SearchMode(const Options& options, PreparedSearch prepared, Explain explain, const nd::DataStore& data)
      : options_(options), prepared_(std::move(prepared)), explain_(explain), data_(data) {
    report_.step_time_band = nd::step_time_band(data, prepared_.scenario);
  }

  Exit run() {
    // --json - and -v 0 keep the standard output to themselves.
    talks_ = options_.verbosity.value_or(2) > 0 && options_.json != "-";
    if (auto conflicts = output_conflicts(); !conflicts.empty()) return refuse(conflicts);
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
  }

  /// What is read must survive, and every file asked for must come out.
  [[nodiscard]] std::vector<nd::Diagnostic> output_conflicts() const {
    std::vector<nd::NamedFile> inputs{{"-y", prepared_.file}}, outputs;
    if (options_.device_type.find('/') != std::string::npos || options_.device_type.ends_with(".yaml")) inputs.push_back({"-A", options_.device_type});
    for (const auto& [option, path] : {std::pair{"--json", &options_.json}, std::pair{"--ranking_csv", &options_.ranking_csv},
                                       std::pair{"--trace", &options_.trace}, std::pair{"--report", &options_.report}})
      if (!path->empty()) outputs.push_back({option, *path});
    if (!options_.output_dir.empty())
      for (const char* name : {"ranking.csv", "search.json", "report.html"}) outputs.push_back({"-o", options_.output_dir + "/" + name});
    // Of many ranks only the one that has the input's own name can be the input.
    const auto name = std::filesystem::path(prepared_.file).filename();
    for (const auto& path : resolved_paths(ranks_written()))
      if (outputs.size() < kMostOutputs || std::filesystem::path(path).filename() == name) outputs.push_back({"-o", path});
    return nd::check_outputs(inputs, outputs);
  }

  Exit explain_stated() {
    const auto scenario = nd::search_scenario(prepared_.scenario, nd::fixed_space(prepared_.scenario.run.strategy), prepared_.options);
    const auto& strategy = prepared_.scenario.run.strategy;
    if (const auto broken = nd::first_violation(prepared_.scenario, strategy); broken || !prepared_.stated_is_legal)
      return refuse({nd::make_diagnostic(nd::Errc::conflict, {prepared_.file, 0, 0, {}},
                                         "the stated strategy cannot run" + (broken ? ": " + std::string(nd::describe(*broken)) : std::string()),
                                         "leave out --explain file to search")});
    // The stated strategy keeps its own lists of recomputed layers.
    nd::Scenario stated = scenario;
    stated.run.full_recompute_layers = prepared_.scenario.run.full_recompute_layers;
    stated.run.selective_recompute_layers = prepared_.scenario.run.selective_recompute_layers;
    const auto priced = nd::price_strategy(stated, strategy);
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

  /// A full disk or a closed pipe shows in the error flag of the stream, whichever write it was.
  static bool stdout_written() {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
    refuse({nd::make_diagnostic(nd::Errc::io, {"standard output", 0, 0, {}}, "cannot be written")});
    return false;
  }

  /// Strategies that are written back one by one, besides the best: as many as -t asks for.
  [[nodiscard]] std::int64_t ranks_written() const { return options_.top.value_or(0); }

  /// Stems of the resolved files: the best candidate, then one per rank.
  [[nodiscard]] std::vector<std::string> resolved_stems(std::int64_t ranks) const {
    std::vector<std::string> out{options_.output_dir + "/resolved"};
    for (std::int64_t rank = 1; rank <= ranks; ++rank) out.push_back(options_.output_dir + "/resolved/" + std::to_string(rank));
    return out;
  }

  [[nodiscard]] std::vector<std::string> resolved_paths(std::int64_t ranks) const {
    std::vector<std::string> out;
    if (options_.output_dir.empty()) return out;
    const auto suffixes = nd::resolved_suffixes(prepared_.format, prepared_.file);
    if (suffixes.empty()) return out;
    for (const auto& stem : resolved_stems(ranks))
      for (const auto& suffix : suffixes) out.push_back(stem + suffix);
    return out;
  }

  /// The input with each strategy in place of its own. What the input's format cannot say is said, and the rest written.
  bool write_strategies() {
    const auto& candidates = report_.result.candidates;
    if (options_.output_dir.empty() || candidates.empty()) return true;
    if (nd::resolved_suffixes(prepared_.format, prepared_.file).empty()) {
      report_.notes.push_back(note("a file of this format states no strategy; none is written back"));
      return true;
    }
    const auto original = nd::read_original(prepared_.format, prepared_.file);
    if (!original) {
      refuse(original.error().diagnostics);
      return false;
    }
    const auto stems = resolved_stems(std::min(ranks_written(), static_cast<std::int64_t>(candidates.size())));
    for (std::size_t i = 0; i < stems.size(); ++i) {
      const auto& candidate = candidates[i == 0 ? 0 : i - 1];
      const auto files = nd::write_resolved(*original, report_.scenario, candidate.config, data_);
      if (!files) {
        for (const auto& problem : files.error().diagnostics)
          report_.notes.push_back(note("rank " + std::to_string(candidate.rank) + " is not written back: " + problem.message));
        continue;
      }
      for (const auto& file : *files)
        if (const std::string path = stems[i] + file.suffix; !written(nd::write_text_file(path, file.text), path)) return false;
    }
    return true;
  }

  [[nodiscard]] nd::Diagnostic note(std::string message) const {
    auto out = nd::make_diagnostic(nd::Errc::unsupported, {prepared_.file, 0, 0, {}}, std::move(message));
    out.severity = nd::Severity::note;
    return out;
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
      if (path == "-") std::fputs(document.c_str(), stdout);
      else if (!written(nd::write_text_file(path, document), path)) return false;
    }
    return stdout_written();
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
  bool talks_ = true;
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
