// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "harness/digest.hpp"
#include "harness/follow.hpp"
#include "harness/store.hpp"
#include "core/file.hpp"

namespace nd {

namespace {

namespace fs = std::filesystem;
using harness::Attempt;
using harness::Ending;

constexpr std::int64_t kMostUncounted = 10;  ///< attempts that a scheduler may take away without counting
constexpr double kLeftoverSeconds = 10;

std::string now_utc() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string folder_name(const PlannedRun& run) {
  std::string name = run.name.substr(0, 80);
  for (char& c : name)
    if (std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.").find(c) == std::string_view::npos) c = '_';
  return name + "-" + run.id;
}

/// One campaign in its folder.
class Runner {
 public:
  Runner(const Campaign& campaign, const CampaignOptions& options, const DataStore& data) : campaign_(campaign), options_(options), data_(data) {}

  Result<CampaignOutcome> run() {
    if (auto problems = check(); !problems.empty()) return Error(std::move(problems));
    std::error_code failed;
    fs::create_directories(options_.folder, failed);
    if (failed) return make_error(Errc::io, {options_.folder, 0, 0, {}}, "cannot be made: " + failed.message());
    auto store = harness::Store::open(options_.folder + "/campaign.sqlite");
    if (!store) return store.error();
    store_ = &*store;
    if (auto problem = store_->claim()) return Error(std::move(*problem));
    mark_ = harness::sha256(fs::absolute(options_.folder).lexically_normal().string()).substr(0, 16) + "/";
    // Of a harness that was killed: nobody else starts processes with this mark, and we own the folder.
    if (const auto left = harness::kill_marked(mark_, kLeftoverSeconds); left > 0)
      return make_error(Errc::conflict, {options_.folder, 0, 0, {}}, fmt::format("{} processes of an earlier run cannot be ended", left), "they may still hold devices");
    if (auto problem = prepare()) return Error(std::move(*problem));
    for (const auto& run : campaign_.runs) {
      if (auto problem = one(run)) return Error(std::move(*problem));
      if (outcome_.stopped) break;
    }
    return std::move(outcome_);
  }

 private:
  std::vector<Diagnostic> check() {
    auto problems = check_campaign(campaign_, data_);
    if (!problems.empty()) return problems;
    launcher_ = std::move(harness::read_launcher(campaign_.launcher, data_)).value();
    profile_ = std::move(harness::read_log_profile(campaign_.log_profile, data_)).value();
    auto failures = harness::read_failures(data_);
    if (!failures) return failures.error().diagnostics;
    failures_ = std::move(*failures);
    for (const auto& run : campaign_.runs)
      if (run.skip.empty() && !launcher_.batch() && !options_.devices.empty() && run.devices > std::ssize(options_.devices))
        problems.push_back(make_diagnostic(Errc::out_of_range, {{}, 0, 0, run.name}, fmt::format("wants {} devices, there are {}", run.devices, options_.devices.size())));
    return problems;
  }

  std::optional<Diagnostic> prepare() {
    if (auto problem = core::write_file(options_.folder + "/plan.json", plan_json(campaign_))) return problem;
    for (const auto& run : campaign_.runs) {
      Campaign single;
      single.runs = {run};
      if (auto problem = store_->save_plan(run.id, plan_json(single))) return problem;
    }
    auto attempts = store_->attempts();
    if (!attempts) return attempts.error().diagnostics.front();
    for (auto& attempt : *attempts) {
      last_number_[attempt.run] = attempt.number;
      if (!attempt.finished) {
        open_[attempt.run] = attempt;
        continue;
      }
      auto result = parse_result(attempt.result, options_.folder + "/campaign.sqlite");
      if (!result) return result.error().diagnostics.front();
      done_[attempt.run] = std::move(*result);
    }
    return std::nullopt;
  }

  bool wanted_again(const RunResult& result) const {
    using enum RunStatus;
    if (result.status == cancelled || result.status == preempted || result.status == node_fail) return true;
    return std::find(options_.again.begin(), options_.again.end(), result.status) != options_.again.end();
  }

  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }
  bool stopped() const { return options_.stop && options_.stop(); }

  std::optional<Diagnostic> one(const PlannedRun& run) {
    const std::string place = fmt::format("[{}/{}] {}", outcome_.results.size() + 1, campaign_.runs.size(), run.name);
    RunResult result;
    if (!run.skip.empty()) {
      result.id = run.id;
      result.name = run.name;
      result.reason = run.skip;
      say(place + ": skipped: " + run.skip);
      outcome_.results.push_back(std::move(result));
      return write_tables();
    }
    const auto known = done_.find(run.id);
    if (known != done_.end() && open_.count(run.id) == 0 && !wanted_again(known->second)) {
      ++outcome_.reused;
      outcome_.results.push_back(known->second);
      say(place + ": " + std::string(to_text(known->second.status)) + ", finished before");
      return write_tables();
    }
    if (stopped()) {
      outcome_.stopped = true;
      return std::nullopt;
    }
    std::int64_t counted = 0, uncounted = 0;
    for (;;) {
      say(place + ": starts");
      if (auto problem = attempt(run, result)) return problem;
      say(place + ": " + summary(result));
      if (result.status == RunStatus::cancelled && stopped()) {
        outcome_.stopped = true;
        break;
      }
      const bool taken = result.status == RunStatus::preempted || result.status == RunStatus::node_fail;
      ++(taken ? uncounted : counted);
      if (!harness::worth_retry(result.status) || counted > campaign_.limits.retries || uncounted > kMostUncounted) break;
    }
    outcome_.results.push_back(std::move(result));
    return write_tables();
  }

  static std::string summary(const RunResult& result) {
    std::string out(to_text(result.status));
    if (succeeded(result.status)) return out + fmt::format(", {:.4g} s a step (median of {})", result.steps.median_s, result.steps.n);
    return out + ": " + result.reason.substr(0, 200);
  }

  /// One attempt, journalled before it starts and after it has ended.
  std::optional<Diagnostic> attempt(const PlannedRun& run, RunResult& result) {
    harness::FollowRequest request;
    request.profile = &profile_;
    request.failures = &failures_;
    request.campaign = &campaign_;
    request.run = &run;
    request.launcher = &launcher_;
    request.options = &options_;
    request.folder = fs::absolute(options_.folder).lexically_normal().string() + "/" + folder_name(run);
    const auto open = open_.find(run.id);
    const bool attach = open != open_.end() && !open->second.job.empty() && launcher_.batch();
    std::int64_t number = last_number_[run.id];
    if (!attach) {
      // An attempt without an end stays in the journal as what it was; the next one has the next number.
      ++number;
      if (auto problem = store_->begin(run.id, number)) return problem;
      last_number_[run.id] = number;
    } else {
      request.job = open->second.job;
    }
    open_.erase(run.id);
    request.number = number;
    request.mark = mark_ + run.id + "/" + std::to_string(number);
    request.on_job = [&](const std::string& job) { return store_->set_job(run.id, number, job); };
    const std::string started = now_utc();
    auto followed = harness::follow(request);
    if (!followed) return followed.error().diagnostics.front();
    result = std::move(*followed);
    result.id = run.id;
    result.name = run.name;
    result.attempts = number;
    result.host = harness::host_name();
    result.started = started;
    const auto text = result_json(result);
    if (auto problem = store_->finish(run.id, number, text)) return problem;
    return core::write_file(request.folder + "/results.json", text);
  }

  /// What is finished, as tables: whole files, after every run.
  std::optional<Diagnostic> write_tables() const {
    std::vector<TableRow> rows;
    for (std::size_t i = 0; i < outcome_.results.size(); ++i) rows.push_back({campaign_.runs[i], outcome_.results[i]});
    for (const auto& [name, text] : {std::pair{"raw_summary.csv", raw_summary_csv(rows)}, std::pair{"benchmarks.csv", benchmarks_csv(rows)}, std::pair{"steps.csv", steps_csv(rows)}})
      if (!text.empty())
        if (auto problem = core::write_file(options_.folder + "/" + name, text)) return problem;
    return std::nullopt;
  }

  const Campaign& campaign_;
  const CampaignOptions& options_;
  const DataStore& data_;
  harness::Launcher launcher_;
  harness::LogProfile profile_;
  harness::FailureTable failures_;
  harness::Store* store_ = nullptr;
  std::string mark_;
  std::map<std::string, RunResult> done_;
  std::map<std::string, Attempt> open_;
  std::map<std::string, std::int64_t> last_number_;
  CampaignOutcome outcome_;
};

}  // namespace

Result<CampaignOutcome> run_campaign(const Campaign& campaign, const CampaignOptions& options, const DataStore& data) {
  return Runner(campaign, options, data).run();
}

}  // namespace nd
