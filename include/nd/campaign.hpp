// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/result.hpp"

// Runs to be measured: what is planned before anything is started. docs/bench.md.
namespace nd {

using Words = std::vector<std::string>;
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// "--name value..." of the training program; no values = the bare switch.
struct RunArgument {
  std::string name;
  Words values;
  friend bool operator==(const RunArgument&, const RunArgument&) = default;
};

/// A file that stands in the run's folder before the run starts.
struct PlannedFile {
  std::string name, text;
  friend bool operator==(const PlannedFile&, const PlannedFile&) = default;
};

/// One run. "{run_dir}" in arguments, environment and program stands for the run's folder.
struct PlannedRun {
  std::string id;    ///< 16 hex digits of what is run: equal ids, equal runs (see run_identity)
  std::string name;  ///< for people; the folder is name-id
  std::int64_t devices = 1;
  std::vector<RunArgument> arguments;
  NamedTexts environment;
  NamedTexts facts;  ///< columns of the tables: strategy, batch, sequence, what the plan varied
  std::vector<PlannedFile> files;
  std::optional<double> predicted_step_s, predicted_memory_gib;
  std::string skip;  ///< why it is not run; empty = it is
  friend bool operator==(const PlannedRun&, const PlannedRun&) = default;
};

/// What counts as a measurement. Steps.
struct MeasureRule {
  std::int64_t warmup = 5;  ///< first steps left out [assumed: compilation, allocator and caches have settled by then]
  std::int64_t least = 5;   ///< fewer steps behind the warm-up are no measurement
  std::int64_t enough = 0;  ///< the run is ended when that many are in; 0 = it runs to its end
  friend bool operator==(const MeasureRule&, const MeasureRule&) = default;
};

/// Limits of one run. Seconds; 0 = none.
struct RunLimits {
  double total_s = 3600;
  double start_s = 0;      ///< until the first step
  double stall_s = 600;    ///< without output
  double grace_s = 30;     ///< between SIGTERM and SIGKILL
  std::int64_t retries = 1;  ///< further attempts where the outcome class allows them
  std::int64_t log_bytes = std::int64_t{64} << 20;  ///< of the output kept on disk; all of it is read
  friend bool operator==(const RunLimits&, const RunLimits&) = default;
};

/// Runs and how they are started, read and limited. The runs have distinct ids.
struct Campaign {
  std::string name = "campaign";
  std::string python = "python3";  ///< interpreter of the program; empty = the program is one itself
  Words program;                   ///< script, or -m and module, or executable
  std::string launcher = "local", log_profile = "hf_trainer";
  NamedTexts launcher_options;
  MeasureRule measure;
  RunLimits limits;
  std::vector<PlannedRun> runs;
  std::vector<Diagnostic> notes;  ///< what was overridden, merged, skipped
  friend bool operator==(const Campaign&, const Campaign&) = default;
};

/// The identity of a run: a digest of program, launcher with its options, devices, arguments by name with numbers by value, environment and
/// files. Order of arguments, names and facts do not count.
[[nodiscard]] std::string run_identity(const Campaign& campaign, const PlannedRun& run);
/// Gives every run its id and merges equal ones (a note says how many).
void identify_runs(Campaign& campaign);
/// Problems that would stop a run before it starts, all at once: unknown launcher or profile, impossible limits, file names that leave the
/// folder. Needs no accelerator.
[[nodiscard]] std::vector<Diagnostic> check_campaign(const Campaign& campaign, const DataStore& data);

/// One JSON document, schema nd/plan/1. Reads back unchanged, except for the notes.
[[nodiscard]] std::string plan_json(const Campaign& campaign);
[[nodiscard]] Result<Campaign> parse_plan(std::string_view text, const std::string& file);
/// The plan as a list for people.
[[nodiscard]] std::string plan_text(const Campaign& campaign);

/// A campaign file, schema nd/campaign/1: matrix, zip, exclude, when.
[[nodiscard]] Result<Campaign> read_campaign(const std::string& path);

/// Scenario files of fms-acceleration's benchmark harness. Absent matrices have its defaults below everything that the files state; stated ones
/// override the files.
struct FmsRequest {
  std::string scenarios, defaults;  ///< paths; `defaults` may be empty
  std::string contents;             ///< CONTENTS.yaml of its sample configurations; may be empty
  NamedTexts framework_configs;     ///< short name and path; used beside `contents`
  std::optional<std::vector<std::int64_t>> num_gpus, effective_batch_size, max_seq_len;
  std::optional<std::vector<bool>> packing;
  Words only;                       ///< names of scenarios; empty = all that are not slow
  std::string training_data;        ///< path of the prepared data set; empty = none is passed
  bool memory_counters = false;     ///< ask the trainer for its memory counters
};
[[nodiscard]] Result<Campaign> plan_fms(const FmsRequest& request);

/// Candidates of a ranking (run_nd --ranking_csv) written into a base configuration.
struct CandidateRequest {
  std::string ranking, base, format;  ///< paths; `format` empty = guessed
  std::string device;                 ///< -A; empty = the base configuration's
  std::int64_t top = 5;
  bool diverse = false;  ///< no two that differ in micro-batches, recompute and schedule only while others are left
};
[[nodiscard]] Result<Campaign> plan_candidates(const CandidateRequest& request, const DataStore& data);

}  // namespace nd
