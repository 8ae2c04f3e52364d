// SPDX-License-Identifier: Apache-2.0
#include "harness/outcome.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>

namespace nd {

namespace {

constexpr std::array<std::string_view, kRunStatusCount> kNames{"ok", "ok_partial", "oom_device", "oom_host", "timeout", "hang", "launch_failed", "invalid_config",
                                                               "crash", "node_fail", "preempted", "cancelled", "no_metrics", "skipped"};
constexpr int kKilledCode = 128 + SIGKILL;  ///< what shells and launchers return for a killed child

}  // namespace

std::string_view to_text(RunStatus status) { return kNames[static_cast<std::size_t>(status)]; }

std::optional<RunStatus> parse_status(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<RunStatus>(i);
  return std::nullopt;
}

namespace harness {

Judgement judge(const Ending& ending, const StepLog& log, bool enough_steps) {
  using enum RunStatus;
  const bool clean = ending.exit_code == 0;
  const auto said = [&](RunStatus status) -> const std::string* {
    const auto found = log.failures().find(status);
    return found == log.failures().end() ? nullptr : &found->second;
  };
  if (enough_steps && clean && ending.stop == Stop::none) return {ok, {}};
  if (enough_steps && ending.stop == Stop::enough) return {ok_partial, {}};
  if (ending.stop == Stop::user) return {cancelled, "stopped by the user"};
  if (const auto* line = said(oom_device)) return {oom_device, *line};
  if (ending.scheduler && *ending.scheduler != crash && !succeeded(*ending.scheduler)) return {*ending.scheduler, "the scheduler says so"};
  if (ending.stop == Stop::total) return {timeout, "longer than the limit of a run"};
  if (ending.stop == Stop::start) return {timeout, "no step within the limit"};
  if (ending.stop == Stop::stall) return {hang, "no output within the limit"};
  if (const auto* line = said(oom_host)) return {oom_host, *line};
  if (ending.signal == SIGKILL || ending.exit_code == kKilledCode) return {oom_host, "killed, and not by us: most often the host's memory ran out"};
  if (const auto* line = said(invalid_config); line != nullptr && log.steps().empty()) return {invalid_config, *line};
  if (const auto* line = said(launch_failed); line != nullptr && log.steps().empty()) return {launch_failed, *line};
  if (!log.cause().empty() && !clean) return {crash, log.cause()};
  if (ending.signal) return {crash, fmt::format("ended by signal {}", *ending.signal)};
  if (!clean) return {crash, ending.exit_code ? fmt::format("exit status {}", *ending.exit_code) : std::string("ended in an unknown way")};
  if (!log.cause().empty()) return {crash, log.cause()};
  return {no_metrics, fmt::format("ended well, but {} steps are too few for the rule", log.steps().size())};
}

bool worth_retry(RunStatus status) {
  using enum RunStatus;
  return status == oom_host || status == hang || status == launch_failed || status == crash || status == node_fail || status == preempted;
}

}  // namespace harness

}  // namespace nd
