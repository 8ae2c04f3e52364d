// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nd/balance_report.hpp"
#include "nd/data_store.hpp"
#include "nd/diagnostic.hpp"
#include "nd/run_spec.hpp"
#include "nd/scenario.hpp"
#include "nd/search.hpp"
#include "nd/search_space.hpp"
#include "nd/study.hpp"

namespace nd {

/// One fact the search was asked about, with where it came from.
struct RequestField {
  std::string name;
  std::variant<std::int64_t, double, bool, std::string> value;
  Origin origin;
};

/// Strategies of the ranking that the page plots at most.
inline constexpr std::size_t kPlottedStrategies = 3000;

/// A finished search with all that its reports show. The scenario is the one the search priced (search_scenario).
struct SearchReport {
  Scenario scenario;
  SearchSpace space;
  SearchResult result;
  std::string file, format;            ///< of the input
  std::vector<RequestField> request;   ///< after defaults
  std::vector<std::string> defaulted;  ///< fields nobody stated that the price depends on
  std::vector<Diagnostic> notes;       ///< warnings and notes about the input
  bool all = false;                    ///< JSON: every candidate of the ranking, not only the best
  bool timings = false;                ///< JSON: seconds of the phases and workers used; without, the document is the same for every run
  int jobs = 0;                        ///< for pricing details of a long ranking; 0 = all cores
  bool brief = false;                  ///< table: the ranking alone, without what explains it
  std::vector<Baseline> baselines;     ///< strategies that need no search, beside the winner
  Objective objective = Objective::time;
  std::optional<double> objective_per_second;  ///< see objective_per_second()
  bool additional_asked = false;
  std::vector<PricedCandidate> additional;     ///< below the best, shown for what they use; ranks of the same ranking
  std::vector<std::pair<std::string, std::string>> fingerprint;  ///< digests of what the prices depend on, by name (nd/fingerprint.hpp)
  std::optional<BalanceReport> balance;        ///< of the strategy that was asked for
  double step_time_band = 0;           ///< nine in ten measured steps of this trainer and device are this close; 0 = not known
};

/// The facts of a resolved run as request fields, in a fixed order.
[[nodiscard]] std::vector<RequestField> request_fields(const Scenario& scenario, const RunSpec& stated);

/// The p90 error of step times of the scenario's framework version and device, by data/measured/bands.yaml; of the next wider
/// group where that one was not measured.
[[nodiscard]] double step_time_band(const DataStore& data, const Scenario& scenario);
/// How far runs of one configuration are from their mean there, as a fraction: predictions closer together than this are ties.
[[nodiscard]] double step_time_repeat(const DataStore& data, const Scenario& scenario);

/// The ranking for people: best candidates, ties, what was left out and why, what was assumed. Ends with a newline.
[[nodiscard]] std::string search_table(const SearchReport& report);
/// One JSON document, schema nd/search/1 (data/schema/search.schema.json). Ends with a newline.
[[nodiscard]] std::string search_json(const SearchReport& report);
/// One self-contained HTML page: the request, the best candidates, and memory, time and pipeline of the one with this rank. What was
/// nearest when nothing fits.
[[nodiscard]] std::string search_html(const SearchReport& report, std::int64_t rank);
/// The passes of the candidate's pipeline as a trace (see trace_json), with the seconds that its price is made of.
[[nodiscard]] std::string pipeline_trace(const SearchReport& report, const PricedCandidate& candidate);
/// Facts that every row of a study shares.
struct StudyReport {
  Study study;
  std::string file, format, model, framework;
  std::vector<std::string> defaulted;
  std::vector<Diagnostic> notes;
};
/// A study for people: one line per search. Ends with a newline.
[[nodiscard]] std::string study_table(const StudyReport& report);
/// One JSON document, schema nd/study/1 (data/schema/study.schema.json). Ends with a newline.
[[nodiscard]] std::string study_json(const StudyReport& report);

/// What one shard of a search found, with the command that it is a part of: the file that --shard writes.
struct PartialFile {
  std::vector<std::string> command;  ///< the request in words; the same for all parts
  std::string inputs;                ///< fingerprint of all that the words stand for (request_fingerprint)
  SearchPartial partial;
};
/// A number for the model, the run, the framework profile, the device and the space: equal for equal requests of the same version.
[[nodiscard]] std::string request_fingerprint(const Scenario& scenario, const SearchSpace& space);
/// One JSON document, schema nd/partial/1. Numbers read back exactly. Ends with a newline.
[[nodiscard]] std::string partial_json(const PartialFile& part);
/// Errors: io, syntax; another schema; a document of another version of nd.
[[nodiscard]] Result<PartialFile> read_partial(const std::string& path);

/// Everything about one strategy: stages, ledger of the peak stage, parts of the step.
[[nodiscard]] std::string explain_strategy(const Scenario& scenario, const PricedCandidate& candidate);

/// Writes a ranking of any length as CSV (docs/cli.md) while it comes, best first: a few thousand candidates are in memory at a
/// time. Nothing has a name on the disk before commit(). Missing folders are created by the first candidate, or by commit().
class RankingCsv {
 public:
  struct Setup {
    Scenario scenario;               ///< as the search priced it (search_scenario)
    int jobs = 0;
    std::vector<std::string> paths;  ///< each gets the whole ranking
  };
  explicit RankingCsv(Setup setup);
  ~RankingCsv();
  RankingCsv(const RankingCsv&) = delete;
  RankingCsv& operator=(const RankingCsv&) = delete;

  void add(const ParallelConfig& config);
  /// Makes the files appear, whole. The reason for the first that failed; those before it are there.
  [[nodiscard]] std::optional<Diagnostic> commit();

 private:
  struct Files;
  void write_block();
  Setup setup_;
  std::unique_ptr<Files> files_;
  std::vector<ParallelConfig> block_;
  std::size_t written_ = 0;
};

/// Writes a text file, whole or not at all; missing folders are created. The reason when it failed.
[[nodiscard]] std::optional<Diagnostic> write_text_file(const std::string& path, std::string_view text);

/// Several files that appear together: nothing is in its place before the first 64 have been written to the disk beside it.
/// A file that cannot be written is found before anything appears; only what fails later (a disk that fills up) can leave a part.
class OutputFiles {
 public:
  OutputFiles();
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  /// Writes the text beside `path`; missing folders are created.
  void add(const std::string& path, std::string_view text);
  /// What could not be written so far (Errc::io), one entry per file.
  [[nodiscard]] const std::vector<Diagnostic>& problems() const;
  /// Gives every file its name unless one of them has a problem; then none gets it.
  [[nodiscard]] const std::vector<Diagnostic>& commit();
  /// Paths in the order of add().
  [[nodiscard]] std::vector<std::string> paths() const;

 private:
  struct Staged;
  std::unique_ptr<Staged> staged_;
};

/// "did you mean 'x'?" or the known names: for messages of programs about their own options.
[[nodiscard]] std::string suggest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace nd
