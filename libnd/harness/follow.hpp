// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/launcher.hpp"
#include "harness/outcome.hpp"
#include "harness/process.hpp"

namespace nd::harness {

/// One attempt of one run. Everything pointed to outlives the call.
struct FollowRequest {
  const LogProfile* profile = nullptr;
  const FailureTable* failures = nullptr;
  const Campaign* campaign = nullptr;
  const PlannedRun* run = nullptr;
  const Launcher* launcher = nullptr;
  const CampaignOptions* options = nullptr;
  std::string folder, mark;
  std::int64_t number = 1;
  std::string job;  ///< of a batch system, when it is submitted already
  std::function<std::optional<Diagnostic>(const std::string&)> on_job;  ///< keeps the number of a submitted job
};

/// Starts the run, reads it to its end or to a limit, leaves no process. Whatever the trainer does is a result; errors are those of our own
/// files and of the start (io).
[[nodiscard]] Result<RunResult> follow(const FollowRequest& request);

}  // namespace nd::harness
