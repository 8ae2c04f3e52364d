// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nd/campaign.hpp"

// Runs that are started, read, judged and tabled. docs/bench.md.
namespace nd {

/// How a run ended. Append-only; names are those of the tables.
enum class RunStatus : std::uint8_t {
  ok,              ///< exit status 0 and enough steps
  ok_partial,      ///< enough steps, then ended by us
  oom_device,      ///< a log says that device memory ran out
  oom_host,        ///< killed, not by us, or the log says host memory ran out
  timeout,         ///< our limit on the whole run
  hang,            ///< no output for too long
  launch_failed,   ///< rendezvous, port, missing module: before the first step
  invalid_config,  ///< the trainer refused the configuration
  crash,           ///< another exception, exit status or signal
  node_fail,       ///< the scheduler lost the node
  preempted,
  cancelled,       ///< by the user, here or in the scheduler
  no_metrics,      ///< exit status 0, too few steps
  skipped,         ///< never started
};
inline constexpr std::size_t kRunStatusCount = 14;
[[nodiscard]] std::string_view to_text(RunStatus status);
[[nodiscard]] std::optional<RunStatus> parse_status(std::string_view text);
[[nodiscard]] inline bool succeeded(RunStatus status) { return status == RunStatus::ok || status == RunStatus::ok_partial; }

/// Seconds per step behind the warm-up; sd is that of a sample, percentiles interpolate linearly.
struct StepStatistics {
  std::int64_t n = 0;
  double median_s = 0, mean_s = 0, sd_s = 0, p10_s = 0, p90_s = 0;
  std::string reading;  ///< where the seconds are from: step_time, tokens_per_s, clock, summary
};

/// One finished run.
struct RunResult {
  std::string id, name;
  RunStatus status = RunStatus::skipped;
  std::string reason;              ///< of a failure, one line
  std::vector<std::string> flags;  ///< nan_loss, log_cut
  std::int64_t attempts = 0;
  std::optional<int> exit_code, signal;
  std::string host, started;       ///< UTC, ISO 8601
  double seconds = 0;              ///< of the last attempt, wall clock
  StepStatistics steps;
  std::optional<double> loss;      ///< of the last step
  std::optional<double> tokens_per_s_per_device;
  std::optional<double> allocated_bytes, reserved_bytes;  ///< peaks by the trainer's own counters, largest of all ranks that print
  std::map<std::string, double> summary;   ///< numbers of the trainer's final summary, by its names
  std::map<std::string, double> out_of_memory;  ///< bytes by name out of the message: requested, capacity, free, ...
  std::string error;               ///< last traceback, shortened
  Words command;
};
[[nodiscard]] std::string result_json(const RunResult& result);  ///< nd/run_result/1
[[nodiscard]] Result<RunResult> parse_result(std::string_view text, const std::string& file);

/// What runs need from the outside.
struct CampaignOptions {
  std::string folder;              ///< of the campaign: journal, runs, tables
  Words environment;               ///< "NAME=VALUE" that the runs inherit
  Words devices;                   ///< indices of local accelerators; empty = 0, 1, ...
  std::vector<RunStatus> again;    ///< finished runs of these classes are run again
  std::function<bool()> stop;      ///< asked a few times a second; true ends the campaign, resumable
  std::function<void(const std::string& line)> progress;
};

struct CampaignOutcome {
  std::vector<RunResult> results;  ///< in the order of the plan; only finished runs
  std::int64_t reused = 0;         ///< finished before, not run again
  bool stopped = false;
};

/// Runs what is not finished yet, one after the other, and writes the tables after every run. Finished runs are known by identity. One
/// harness per folder: a second one is refused. A harness that was killed leaves nothing behind that the next one does not clean up. Errors:
/// those of check_campaign; conflict (folder in use), io.
[[nodiscard]] Result<CampaignOutcome> run_campaign(const Campaign& campaign, const CampaignOptions& options, const DataStore& data);

/// What the logs of a run say, by a profile: for logs that exist already. Facts of the run (gbs, seq_length, devices, ...) turn rates into
/// seconds.
struct LogRequest {
  std::vector<std::string> files;
  std::string profile;
  PlannedRun run;
  MeasureRule rule;
};
[[nodiscard]] Result<RunResult> read_logs(const LogRequest& request, const DataStore& data);

/// A run with its plan, for tables.
struct TableRow {
  PlannedRun plan;
  RunResult result;
};
/// Finished runs of campaign folders; of equal ids the later folder's.
[[nodiscard]] Result<std::vector<TableRow>> gather_results(const std::vector<std::string>& folders);
/// One row per run, failed ones too: the columns of fms-acceleration's raw_summary.csv, status and reason beside them.
[[nodiscard]] std::string raw_summary_csv(const std::vector<TableRow>& rows);
/// The runs that succeeded, without the columns that are the same everywhere, except what identifies a run and what was measured.
[[nodiscard]] std::string benchmarks_csv(const std::vector<TableRow>& rows);
/// The classified CSV of run_nd --real_csv: dimensions of the strategy, time and step_trainer in milliseconds. Succeeded runs that state one.
[[nodiscard]] std::string steps_csv(const std::vector<TableRow>& rows);

/// How two tables compare. Keys and metrics are columns of both.
struct CompareRule {
  Words keys;
  struct Metric {
    std::string column;
    bool higher_is_better = false;
    double threshold = 0.1;  ///< relative
  };
  std::vector<Metric> metrics;
};
struct TableDifference {
  std::string key, metric;
  double reference = 0, measured = 0, relative = 0;  ///< measured / reference - 1
  bool regression = false;                           ///< else an improvement
};
struct TableComparison {
  std::int64_t common = 0;
  std::vector<TableDifference> differences;   ///< beyond the threshold
  Words missing, fresh, failed;               ///< keys: only in the reference, only in the new table, without a figure that the reference has
  Words differing_arguments;                  ///< "key: column old -> new" of rows with a difference
  [[nodiscard]] bool regressed() const;
};
[[nodiscard]] CompareRule default_compare_rule();
[[nodiscard]] Result<TableComparison> compare_tables(const std::string& reference, const std::string& measured, const CompareRule& rule);
[[nodiscard]] std::string to_text(const TableComparison& comparison);

}  // namespace nd
