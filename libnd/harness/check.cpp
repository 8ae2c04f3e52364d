// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "harness/launcher.hpp"
#include "harness/log_profile.hpp"
#include "nd/campaign.hpp"

namespace nd {

std::vector<Diagnostic> check_campaign(const Campaign& campaign, const DataStore& data) {
  std::vector<Diagnostic> problems;
  const auto problem = [&](const std::string& where, std::string message) { problems.push_back(make_diagnostic(Errc::out_of_range, {{}, 0, 0, where}, std::move(message))); };
  const auto add = [&](const Error& error) { problems.insert(problems.end(), error.diagnostics.begin(), error.diagnostics.end()); };
  const auto launcher = harness::read_launcher(campaign.launcher, data);
  if (!launcher) add(launcher.error());
  if (const auto profile = harness::read_log_profile(campaign.log_profile, data); !profile) add(profile.error());
  if (campaign.program.empty()) problem("program", "is not stated: there is nothing to start");
  const auto& rule = campaign.measure;
  if (rule.warmup < 0 || rule.least < 1 || rule.enough < 0 || (rule.enough > 0 && rule.enough < rule.least)) problem("measure", "wants warmup >= 0, least >= 1, and enough 0 or at least `least`");
  const auto& limits = campaign.limits;
  for (const double value : {limits.total_s, limits.start_s, limits.stall_s, limits.grace_s})
    if (!(value >= 0) || !std::isfinite(value)) problem("limits", fmt::format("must not be negative, is {}", value));
  if (limits.retries < 0 || limits.retries > 100) problem("limits", fmt::format("retries must be from 0 to 100, is {}", limits.retries));
  if (limits.log_bytes < 4096) problem("limits", fmt::format("log_bytes must be at least 4096, is {}", limits.log_bytes));
  std::set<std::string> ids;
  for (const auto& run : campaign.runs) {
    if (run.id != run_identity(campaign, run)) problem(run.name, "has an id that is not its own: the plan was changed by hand");
    if (!ids.insert(run.id).second) problem(run.name, "has the id of another run");
    for (const auto& file : run.files) {
      const auto path = std::filesystem::path(file.name).lexically_normal();
      if (path.empty() || path.is_absolute() || *path.begin() == "..") problem(run.name, "file '" + file.name + "' would lie outside the run's folder");
    }
    for (const auto& [name, value] : run.environment)
      if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) problem(run.name, "'" + name + "' is no name of the environment");
    if (!launcher || !run.skip.empty()) continue;
    const auto launch = harness::make_launch(*launcher, campaign, run, {"run", {}, 1});
    if (!launch) {
      add(launch.error());
      break;  // the same for every run
    }
  }
  if (campaign.runs.empty()) problem("runs", "there are none");
  return problems;
}

}  // namespace nd
