// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "modes.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "request.hpp"
#include "resolved_files.hpp"
#include "values.hpp"

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

/// The run of one search after it has been prepared.
class SearchMode {
 public:
  struct Setup {
    PreparedSearch prepared;
    Explain explain;
    std::vector<std::string> command;  ///< the request in words, for --shard
  };
  SearchMode(const Options& options, Setup setup, const nd::DataStore& data)
      : options_(options), prepared_(std::move(setup.prepared)), explain_(setup.explain), command_(std::move(setup.command)), data_(data), talks_(talks(options)) {
    report_.step_time_band = nd::step_time_band(data, prepared_.scenario);
  }

  Exit run() {
    if (auto problems = checked(); !problems.empty()) return refuse(problems);
    if (explain_.file) return explain_stated();
    if (const auto refused = calibrate(); !refused.empty()) return refuse(refused);
    if (!options_.part.empty()) return write_part();
    return finish(searched());
  }

  /// The same from the parts of all shards instead of a search.
  Exit run_merged(const std::vector<nd::SearchPartial>& parts) {
    if (auto problems = checked(); !problems.empty()) return refuse(problems);
    auto options = part_options();
    if (!ranking_paths().empty()) options.on_ranked = [this](const nd::RankedCandidate& candidate) { ranking_csv().add(candidate.config); };
    auto result = nd::merge_shards(prepared_.scenario, prepared_.space, options, parts);
    if (!result) {
      auto problems = result.error().diagnostics;
      for (auto& problem : problems) problem.where.path = "merge";
      return refuse(problems);
    }
    return finish(std::move(*result));
  }

 private:
  [[nodiscard]] std::vector<nd::Diagnostic> checked() const {
    auto problems = output_conflicts(options_, prepared_.file, resolved_paths(resolved_place()));
    if (options_.potentials && options_.output_dir.empty()) problems.push_back(usage_error("-rp", "needs -o", "a folder for recompute_potentials.csv and .svg"));
    if (options_.potentials && !prepared_.scenario.run.layer_modes[static_cast<std::size_t>(nd::Recompute::full)])
      problems.push_back(usage_error("-rp", "recomputes layers in full, which --recompute leaves out", "add full to --recompute"));
    for (auto problem : nd::check_search_options(prepared_.scenario, search_options())) {
      if (problem.severity != nd::Severity::error) continue;
      problem.where = {{}, 0, 0, problem.where.path.starts_with('-') ? problem.where.path : "--objective"};
      problems.push_back(std::move(problem));
    }
    return problems;
  }

  Exit finish(nd::SearchResult result) {
    report_.result = std::move(result);
    if (plotted_.size() > report_.result.ranking.size()) report_.result.ranking = plotted_;
    describe();
    if (const auto excluded = excluding_lists(); !excluded.empty()) return refuse(excluded);
    if (explain_.rank > static_cast<std::int64_t>(report_.result.candidates.size()) && !report_.result.candidates.empty())
      return refuse({usage_error("--explain", "only " + std::to_string(report_.result.candidates.size()) + " candidates fit")});
    const auto shown = static_cast<std::int64_t>(report_.result.candidates.size());
    if (options_.balance && shown > 0) {
      if (*options_.balance >= shown) return refuse({usage_error("-k", "only " + std::to_string(shown) + " candidates fit, counted from 0")});
      report_.balance = nd::balance_report(report_.scenario, report_.result.candidates[static_cast<std::size_t>(*options_.balance)]);
    }
    if (!options_.trace.empty() && chosen() == nullptr) report_.notes.push_back(no_trace());
    if (!write_files()) return Exit::output;
    print();
    if (!stdout_written()) return Exit::output;
    return report_.result.candidates.empty() ? Exit::nothing_fits : Exit::done;
  }

  [[nodiscard]] nd::Diagnostic no_trace() const {
    auto out = nd::make_diagnostic(nd::Errc::empty_space, {{}, 0, 0, "--trace"}, "nothing fits, so there is no pipeline to show: " + options_.trace + " is not written");
    out.severity = nd::Severity::note;
    return out;
  }

  /// Files that price the ranking anew would show uncalibrated times.
  std::vector<nd::Diagnostic> calibrate() {
    if (options_.calibration.empty()) return {};
    std::vector<nd::Diagnostic> problems;
    for (const auto& [option, given] : {std::pair{"--shard", !options_.part.empty()}, std::pair{"--ranking_csv", !options_.ranking_csv.empty()}, std::pair{"-o", !options_.output_dir.empty()},
                                        std::pair{"--report", !options_.report.empty()}, std::pair{"--trace", !options_.trace.empty()},
                                        std::pair{"--all", options_.all}})
      if (given) problems.push_back(usage_error(option, "cannot be combined with -c: it would show uncalibrated times", "--json has the calibrated candidates"));
    auto factors = read_calibration(options_, prepared_.scenario, prepared_.notes);
    if (!factors) problems.insert(problems.end(), factors.error().diagnostics.begin(), factors.error().diagnostics.end());
    else factors_ = *factors;
    return problems;
  }

  [[nodiscard]] nd::SearchOptions search_options() const {
    auto options = prepared_.options;
    options.top = std::max({options.top, explain_.rank, options_.balance.value_or(-1) + 1});
    options.tie_band = report_.step_time_band;
    // A program reads more than a screen shows, unless it was told how much; so does the plot of the page.
    constexpr std::int64_t kDocumentCandidates = 100;
    const bool documents = !options_.json.empty() || !options_.output_dir.empty() || !options_.report.empty();
    if (!options_.top && documents) options.top = std::max(options.top, kDocumentCandidates);
    return options;
  }

  /// Of a part and of its merge: a part holds the whole ranking that the merge writes.
  [[nodiscard]] nd::SearchOptions part_options() const {
    auto options = search_options();
    options.keep_all = options.keep_all || !ranking_paths().empty();
    return options;
  }

  nd::SearchResult searched() {
    const Interrupt interrupt;
    Progress progress(options_);
    auto options = search_options();
    options.progress = progress.callback();
    options.stop = interrupt.token();
    if (!ranking_paths().empty()) {
      // The ranking goes to its files as it comes.
      options.on_ranked = [this](const nd::RankedCandidate& candidate) {
        ranking_csv().add(candidate.config);
        if (plotted_.size() < nd::kPlottedStrategies) plotted_.push_back(candidate);
      };
    }
    return factors_.identity() ? nd::search_strategies(prepared_.scenario, prepared_.space, options)
                               : nd::calibrated_search(prepared_.scenario, prepared_.space, options, factors_);
  }

  Exit write_part() {
    nd::PartialFile part;
    {
      const Interrupt interrupt;
      Progress progress(options_);
      auto options = part_options();
      options.progress = progress.callback();
      options.stop = interrupt.token();
      part.partial = nd::search_shard(prepared_.scenario, prepared_.space, options);
    }
    part.command = command_;
    part.inputs = nd::request_fingerprint(prepared_.scenario, prepared_.space);
    if (const auto problem = nd::write_text_file(options_.part, nd::partial_json(part))) {
      refuse({*problem});
      return Exit::output;
    }
    if (talks_) std::printf("%lld strategies of part %s fit\nwrote %s\n", static_cast<long long>(part.partial.stats.fitting), options_.shard.c_str(), options_.part.c_str());
    return stdout_written() ? Exit::done : Exit::output;
  }

  /// Everything around the result that reports show.
  void describe() {
    const auto options = search_options();
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
    report_.objective = options.objective;
    report_.objective_per_second = nd::objective_per_second(report_.scenario, options);
    const auto print = nd::fingerprint(report_.scenario, factors_);
    report_.fingerprint = {{"model", print.model}, {"device", print.device}, {"framework", print.framework}, {"calibration", print.calibration}, {"version", print.version}};
    add_baselines(options);
    add_additional();
  }

  /// -e, -ee, -eee: candidates below the best that use what the best do not.
  void add_additional() {
    const nd::AdditionRule rule{.dimensions = prepared_.searched, .in_all = options_.exhaustive.value_or(0), .always = options_.force_exhaustive.value_or(0),
                                .own = options_.fforce_exhaustive.value_or(0)};
    if (rule.in_all == 0 && rule.always == 0 && rule.own == 0) return;
    report_.additional_asked = true;
    const auto& ranking = report_.result.ranking;
    const auto found = nd::additional_candidates(ranking, static_cast<std::size_t>(prepared_.options.top), rule);
    std::vector<nd::ParallelConfig> configs;
    for (const auto at : found) configs.push_back(ranking[at].config);
    report_.additional = nd::price_strategies(report_.scenario, configs, prepared_.options.jobs);
    for (std::size_t i = 0; i < found.size(); ++i) report_.additional[i].rank = static_cast<std::int64_t>(found[i]) + 1;
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
    for (auto& baseline : report_.baselines)
      if (baseline.priced) nd::calibrate(*baseline.priced, factors_);
  }

  Exit explain_stated() {
    if (!prepared_.stated_is_legal) return refuse(why_not());
    const nd::Scenario stated = nd::stated_scenario(prepared_.scenario, prepared_.options);
    const auto priced = nd::price_strategy(stated, prepared_.scenario.run.strategy);
    if (talks_) std::fputs(nd::explain_strategy(stated, priced).c_str(), stdout);
    return priced.memory.fit == nd::Fit::no ? Exit::nothing_fits : Exit::done;
  }

  /// Nothing fits, and it is the search config's own doing: each list without which something does, with the best it excludes.
  [[nodiscard]] std::vector<nd::Diagnostic> excluding_lists() const {
    std::vector<nd::Diagnostic> out;
    if (!report_.result.candidates.empty()) return out;
    for (const auto& list : prepared_.candidates) {
      if (list.values.empty()) continue;
      // One key of the file may bound several dimensions: fsdp the shards and what they hold.
      const auto first = std::find_if(prepared_.candidates.begin(), prepared_.candidates.end(), [&list](const auto& one) { return one.where == list.where; });
      if (&*first != &list) continue;
      auto space = prepared_.space;
      for (const auto& one : prepared_.candidates)
        if (one.where == list.where) space.of(one.dimension) = {};
      auto options = prepared_.options;
      options.top = 1;
      options.keep_all = false;
      const auto without = nd::search_strategies(prepared_.scenario, space, options);
      if (without.candidates.empty()) continue;
      const auto& best = without.candidates.front();
      const auto name = std::string(nd::dimension_info(list.dimension).name);
      out.push_back(nd::make_diagnostic(nd::Errc::empty_space, list.where,
                                        "nothing fits with this list; it excludes " + std::to_string(without.stats.fitting) + " strategies that do, the best of them " +
                                            nd::to_text(best.config),
                                        name + "=" + nd::value_text(list.dimension, nd::value_of(best.config, list.dimension))));
    }
    return out;
  }

  /// Every field of the stated strategy that cannot be, at its place in the input, with what could.
  [[nodiscard]] std::vector<nd::Diagnostic> why_not() const {
    constexpr std::string_view kSetting = "--set ";
    std::vector<nd::Diagnostic> out;
    if (!prepared_.stated_problems.empty()) {
      // Where the degrees do not go together the other problems are about degrees that nobody stated.
      out.push_back(prepared_.stated_problems.front());
      out.front().message = "the stated strategy cannot run: " + out.front().message;
      return out;
    }
    for (auto& problem : nd::check_space(prepared_.scenario, nd::fixed_space(prepared_.scenario.run.strategy))) {
      if (problem.severity != nd::Severity::error) continue;
      problem.where.file = prepared_.file;
      if (problem.where.path.starts_with(kSetting)) {
        problem.where.path.erase(0, kSetting.size());
        if (const auto dimension = nd::parse_dimension(problem.where.path, {})) {
          const auto origin = prepared_.stated.origins.find(std::string(nd::dimension_info(*dimension).field));
          if (origin != prepared_.stated.origins.end() && origin->second.where.line > 0) problem.where = origin->second.where;
        }
      }
      problem.message = "the stated strategy cannot run: " + problem.message;
      out.push_back(std::move(problem));
    }
    if (out.empty())
      out.push_back(nd::make_diagnostic(nd::Errc::conflict, {prepared_.file, 0, 0, {}},
                                        "the stated strategy cannot run: " + prepared_.stated_problem,
                                        "leave out --explain file to search"));
    return out;
  }

  /// As many ranks one by one as -t asks for.
  [[nodiscard]] ResolvedPlace resolved_place() const {
    return {.folder = options_.output_dir, .format = prepared_.format,
            .files = {.main = prepared_.file, .train = options_.train_yaml, .accelerate = options_.accelerate_yaml}, .ranks = options_.top.value_or(0), .balanced = options_.balance.has_value()};
  }

  bool add_strategies(nd::OutputFiles& output) {
    auto outcome = write_resolved_files(resolved_place(), report_, data_, output);
    report_.notes.insert(report_.notes.end(), outcome.notes.begin(), outcome.notes.end());
    const auto balanced = write_balanced_files(resolved_place(), report_, data_, output);
    report_.notes.insert(report_.notes.end(), balanced.notes.begin(), balanced.notes.end());
    if (report_.balance && !options_.output_dir.empty())
      output.add(options_.output_dir + "/" + std::filesystem::path(prepared_.file).stem().string() + "_nd_to_ppb_" + std::to_string(*options_.balance) + ".json",
                 nd::layer_description_json(report_.scenario.model.name, report_.balance->layers));
    if (!outcome.problems.empty()) refuse(outcome.problems);
    return outcome.problems.empty();
  }

  [[nodiscard]] std::vector<std::string> ranking_paths() const {
    std::vector<std::string> out;
    if (!options_.ranking_csv.empty()) out.push_back(options_.ranking_csv);
    if (!options_.output_dir.empty()) out.push_back(options_.output_dir + "/ranking.csv");
    return out;
  }

  nd::RankingCsv& ranking_csv() {
    if (!ranking_csv_)
      ranking_csv_ = std::make_unique<nd::RankingCsv>(nd::RankingCsv::Setup{
          .scenario = nd::search_scenario(prepared_.scenario, prepared_.space, prepared_.options), .jobs = prepared_.options.jobs, .paths = ranking_paths()});
    return *ranking_csv_;
  }

  bool write_ranking() {
    const auto paths = ranking_paths();
    if (paths.empty()) return true;
    if (const auto problem = ranking_csv().commit()) {
      refuse({*problem});
      return false;
    }
    files_.insert(files_.end(), paths.begin(), paths.end());
    return true;
  }

  /// All of the files or none: what is written to the standard output comes last.
  bool write_files() {
    nd::OutputFiles output;
    if (!add_strategies(output)) return false;
    add_pages(output);
    add_potentials(output);
    const std::string document = options_.json.empty() && options_.output_dir.empty() ? std::string{} : nd::search_json(report_);
    if (!options_.json.empty() && options_.json != "-") output.add(options_.json, document);
    if (!options_.output_dir.empty()) output.add(options_.output_dir + "/search.json", document);
    if (!output.problems().empty()) {
      refuse(output.problems());
      return false;
    }
    if (!write_ranking()) return false;
    if (!output.commit().empty()) {
      refuse(output.problems());
      return false;
    }
    const auto paths = output.paths();
    files_.insert(files_.end(), paths.begin(), paths.end());
    check_resolved_names();
    return options_.json != "-" || write_document(document, "-");
  }

  void add_potentials(nd::OutputFiles& output) const {
    if (!options_.potentials || report_.result.candidates.empty()) return;
    const auto& candidates = report_.result.candidates;
    const auto shown = std::min(candidates.size(), static_cast<std::size_t>(prepared_.options.top));
    const auto potentials = nd::recompute_potentials(report_.scenario, {candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(shown)});
    output.add(options_.output_dir + "/recompute_potentials.csv", nd::potentials_csv(potentials));
    if (const auto plot = nd::potentials_svg(potentials); !plot.empty()) output.add(options_.output_dir + "/recompute_potentials.svg", plot);
  }

  /// A written-back file keeps the names it had: relative ones count from the folder of the original.
  void check_resolved_names() {
    const auto written = resolved_paths(resolved_place());
    if (written.empty() || std::find(files_.begin(), files_.end(), written.front()) == files_.end()) return;
    if (nd::read_request(written.front(), prepared_.format, data_)) return;
    auto folder = std::filesystem::path(prepared_.file).parent_path().string();
    if (folder.empty()) folder = ".";
    resolved_note_ = "names in the written-back files are those of the original: relative ones count from " + folder;
  }

  /// The candidate that --trace and --report are about.
  [[nodiscard]] const nd::PricedCandidate* chosen() const {
    const auto& candidates = report_.result.candidates;
    return candidates.empty() ? nullptr : &candidates[static_cast<std::size_t>(std::max<std::int64_t>(1, explain_.rank)) - 1];
  }

  void add_pages(nd::OutputFiles& output) const {
    std::vector<std::string> pages;
    if (!options_.report.empty()) pages.push_back(options_.report);
    if (!options_.output_dir.empty()) pages.push_back(options_.output_dir + "/report.html");
    const auto* candidate = chosen();
    if (!pages.empty()) {
      const std::string page = nd::search_html(report_, candidate == nullptr ? 0 : candidate->rank);
      for (const auto& path : pages) output.add(path, page);
    }
    // When nothing fits there are no passes to show; the exit status says so.
    if (!options_.trace.empty() && candidate != nullptr) output.add(options_.trace, nd::pipeline_trace(report_, *candidate));
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
    if (!resolved_note_.empty()) std::printf("note: %s\n", resolved_note_.c_str());
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
  std::vector<std::string> command_;
  const nd::DataStore& data_;
  nd::PriceFactors factors_;  ///< of -c
  nd::SearchReport report_;
  std::unique_ptr<nd::RankingCsv> ranking_csv_;
  std::vector<nd::RankedCandidate> plotted_;  ///< the best of a ranking that goes to its files
  std::vector<std::string> files_;
  std::string resolved_note_;  ///< what to know about the written-back files
  bool talks_;
};

}  // namespace

namespace {

/// Everything that one search needs; every problem that can be found together.
nd::Result<SearchMode::Setup> set_up(const Options& options, const nd::DataStore& data, std::vector<std::string> command) {
  const auto explain = parse_explain(options.explain);
  auto prepared = prepare_search(options, data);
  std::vector<nd::Diagnostic> problems;
  if (!explain) problems = explain.error().diagnostics;
  if (!prepared) problems.insert(problems.end(), prepared.error().diagnostics.begin(), prepared.error().diagnostics.end());
  if (!problems.empty()) return nd::Error(std::move(problems));
  return SearchMode::Setup{std::move(*prepared), *explain, std::move(command)};
}

/// The words without what belongs to the machine or to the part.
std::vector<std::string> request_words(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const auto& word : words) {
    const bool local = word.starts_with("--shard=") || word.starts_with("--part=") || word.starts_with("--jobs=") || word.starts_with("--data-dir=");
    if (!local) out.push_back(word);
  }
  return out;
}

nd::Diagnostic wrong_part(const std::string& path, std::string message, std::string hint) {
  return nd::make_diagnostic(nd::Errc::conflict, {path, 0, 0, {}}, std::move(message), std::move(hint));
}

}  // namespace

Exit run_search(const ParsedOptions& parsed, const nd::DataStore& data) {
  auto setup = set_up(parsed.options, data, request_words(parsed.words));
  if (!setup) return refuse(setup.error().diagnostics);
  return SearchMode(parsed.options, std::move(*setup), data).run();
}

Exit run_merge(const Options& options, const nd::DataStore& data) {
  std::vector<nd::PartialFile> files;
  std::vector<nd::Diagnostic> problems;
  for (const auto& path : options.parts) {
    auto file = nd::read_partial(path);
    if (!file) problems.insert(problems.end(), file.error().diagnostics.begin(), file.error().diagnostics.end());
    else if (!files.empty() && (file->command != files.front().command || file->inputs != files.front().inputs))
      problems.push_back(wrong_part(path, "is a part of another request than " + options.parts.front(), "merge the parts of one command line"));
    else files.push_back(std::move(*file));
  }
  if (!problems.empty()) return refuse(problems);
  auto parsed = parse_canonical(files.front().command);
  if (!parsed.problems.empty()) return refuse({wrong_part(options.parts.front(), "holds a command line that this version refuses", "run the parts again")});
  parsed.options.jobs = options.jobs;
  parsed.options.data_dir = options.data_dir;
  if (options.verbosity) parsed.options.verbosity = options.verbosity;
  auto setup = set_up(parsed.options, data, {});
  if (!setup) return refuse(setup.error().diagnostics);
  if (nd::request_fingerprint(setup->prepared.scenario, setup->prepared.space) != files.front().inputs)
    return refuse({wrong_part(options.parts.front(), "what its command line stands for has changed since", "run the parts again")});
  std::vector<nd::SearchPartial> parts;
  for (auto& file : files) parts.push_back(std::move(file.partial));
  return SearchMode(parsed.options, std::move(*setup), data).run_merged(parts);
}

}  // namespace run_nd
