// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "harness/step_log.hpp"
#include "nd/bench.hpp"

namespace nd::harness {

/// Why we ended a run ourselves.
enum class Stop { none, enough, total, start, stall, user };

/// How the process (or job) of a run ended.
struct Ending {
  std::optional<int> exit_code, signal;
  Stop stop = Stop::none;
  std::optional<RunStatus> scheduler;  ///< what a batch system says
};

/// The class and a line that says why (7.5 of the plan this follows: evidence in the order of RunStatus' rows in docs/bench.md).
struct Judgement {
  RunStatus status = RunStatus::crash;
  std::string reason;
};
[[nodiscard]] Judgement judge(const Ending& ending, const StepLog& log, bool enough_steps);

/// Whether a run of this class is worth another attempt.
[[nodiscard]] bool worth_retry(RunStatus status);

/// Statistics of the steps behind the warm-up, from the trainer's step times, else its rates, else the clock, else its summary.
[[nodiscard]] StepStatistics step_statistics(const StepLog& log, const PlannedRun& run, const MeasureRule& rule, std::int64_t every);
[[nodiscard]] std::optional<double> fact_number(const PlannedRun& run, std::string_view name);
/// Fills what the log says into the result, status apart.
void describe_log(const StepLog& log, const PlannedRun& run, RunResult& result);

/// Memory of the Hugging Face Trainer's counters: with m0 before init and allocated / peaked deltas of init and training, allocated =
/// max(m0, m0 + a1, m0 + a1 + a2), peak = max(m0, m0 + a1 + p1, m0 + a1 + a2 + p2). Bytes; nullopt without counters.
struct TrainerMemory {
  double allocated = 0, peak = 0;
};
[[nodiscard]] std::optional<TrainerMemory> trainer_memory(const std::map<std::string, double>& summary);

}  // namespace nd::harness
