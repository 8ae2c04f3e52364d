// SPDX-License-Identifier: Apache-2.0
// Campaigns with real processes: shell scripts that do what trainers do on bad days.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "folder.hpp"
#include "harness/process.hpp"
#include "harness/store.hpp"
#include "nd/bench.hpp"

namespace {

using nd::RunStatus;
using nd::testing::Folder;
using nd::testing::read_file;

const nd::DataStore kData(ND_TEST_DATA_DIR);
const char* const kSteps = "for i in 1 2 3 4 5 6; do echo \"iteration $i/ 9 | elapsed time per iteration (ms): $((100 + i)).0 | lm loss: 1.5 |\"; done\n";

/// Runs of shell scripts, one per text.
struct Scripts {
  Folder folder{"run"};
  nd::Campaign campaign;
  nd::CampaignOptions options;
  explicit Scripts(const std::vector<std::string>& texts) {
    campaign.python = "";
    campaign.program = {"/bin/sh", "{run_dir}/script.sh"};
    campaign.log_profile = "megatron";
    campaign.measure = {1, 3, 0};
    campaign.limits = {.total_s = 20, .start_s = 0, .stall_s = 10, .grace_s = 0.5, .retries = 0, .log_bytes = 1 << 20};
    int number = 0;
    for (const auto& text : texts) {
      nd::PlannedRun run;
      run.name = "script" + std::to_string(++number);
      run.files = {{"script.sh", text}};
      run.facts = {{"dp", "2"}, {"tp", std::to_string(number)}};
      campaign.runs.push_back(run);
    }
    nd::identify_runs(campaign);
    options.folder = folder.path("out");
    options.environment = {"PATH=/usr/bin:/bin", "HOME=/", "ND_BENCH_RUN=of an outer harness"};
  }
  [[nodiscard]] std::vector<nd::RunResult> run() const {
    const auto outcome = nd::run_campaign(campaign, options, kData);
    if (!outcome)
      for (const auto& one : outcome.error().diagnostics) UNSCOPED_INFO(nd::to_text(one));
    REQUIRE(outcome.has_value());
    return outcome->results;
  }
  [[nodiscard]] std::string run_folder(std::size_t i) const { return options.folder + "/" + campaign.runs[i].name + "-" + campaign.runs[i].id; }
};

bool alive(const std::string& file) {
  const std::string text = read_file(file);
  if (text.empty()) return false;
  const auto stat = read_file("/proc/" + std::to_string(std::stol(text)) + "/stat");
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

template <class Condition>
bool within_seconds(double seconds, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return condition();
}

}  // namespace

TEST_CASE("a run is measured, tabled and not run again", "[run]") {
  const Scripts scripts({std::string("echo started >> $0.count\n") + kSteps});
  auto results = scripts.run();
  REQUIRE(results.size() == 1);
  CHECK(results[0].status == RunStatus::ok);
  CHECK(results[0].steps.n == 5);                        // six steps, one of them warm-up
  CHECK(results[0].steps.median_s == Approx(0.104));     // 102 103 104 105 106 ms
  results = scripts.run();
  CHECK(results[0].status == RunStatus::ok);
  CHECK(read_file(scripts.run_folder(0) + "/script.sh.count") == "started\n");
  CHECK(read_file(scripts.options.folder + "/steps.csv") == "DP,MP,time,step_trainer\n2,1,104.000,104.000\n");
  CHECK(read_file(scripts.options.folder + "/raw_summary.csv").find(",ok,") != std::string::npos);
  const auto stored = nd::parse_result(read_file(scripts.run_folder(0) + "/results.json"), "results.json");
  REQUIRE(stored.has_value());
  CHECK(stored->steps.median_s == results[0].steps.median_s);
  const auto rows = nd::gather_results({scripts.options.folder, scripts.options.folder});
  REQUIRE(rows.has_value());
  CHECK(rows->size() == 1);  // nothing is counted twice
}

TEST_CASE("failures have their class and the next run still runs", "[run]") {
  const Scripts scripts({"echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.' >&2; exit 1\n", "kill -9 $$\n", "exit 7\n", "echo fine\n",
                         std::string(kSteps) + "echo 'iteration 7/ 9 | elapsed time per iteration (ms): 100.0 | lm loss: nan |'\n"});
  const auto results = scripts.run();
  REQUIRE(results.size() == 5);
  CHECK(results[0].status == RunStatus::oom_device);
  CHECK(results[0].out_of_memory.at("requested") == 1073741824.0);
  CHECK(results[1].status == RunStatus::oom_host);
  CHECK(results[1].signal == SIGKILL);
  CHECK(results[2].status == RunStatus::crash);
  CHECK(results[2].reason == "exit status 7");
  CHECK(results[3].status == RunStatus::no_metrics);
  CHECK(results[4].status == RunStatus::ok);
  CHECK(results[4].flags == std::vector<std::string>{"nan_loss"});
  const auto table = read_file(scripts.options.folder + "/raw_summary.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 6);  // failed runs stay in the table (defect 43)
}

TEST_CASE("limits end hanging runs, and grandchildren that detached themselves with them", "[run]") {
  Scripts scripts({"trap '' TERM\nsetsid sh -c 'echo $$ > \"$0\"; exec sleep 300' $0.pid &\nsleep 300\n", "while :; do echo busy; sleep 0.1; done\n"});
  scripts.campaign.limits.stall_s = 3;
  scripts.campaign.limits.total_s = 5;
  const auto results = scripts.run();
  CHECK(results[0].status == RunStatus::hang);
  CHECK(results[1].status == RunStatus::timeout);
  CHECK(within_seconds(2, [&] { return !alive(scripts.run_folder(0) + "/script.sh.pid"); }));
}

TEST_CASE("what a run leaves behind after a good end is ended too", "[run]") {
  const Scripts scripts({std::string(kSteps) + "setsid sh -c 'echo $$ > \"$0\"; exec sleep 300' $0.pid &\nsleep 0.3\n"});
  const auto results = scripts.run();
  CHECK(results[0].status == RunStatus::ok);
  REQUIRE_FALSE(read_file(scripts.run_folder(0) + "/script.sh.pid").empty());
  CHECK(within_seconds(2, [&] { return !alive(scripts.run_folder(0) + "/script.sh.pid"); }));
}

TEST_CASE("a run is ended when enough steps are in", "[run]") {
  Scripts scripts({"i=0\nwhile :; do i=$((i + 1)); echo \"iteration $i/ 9 | elapsed time per iteration (ms): 50.0 | lm loss: 1 |\"; sleep 0.05; done\n"});
  scripts.campaign.measure = {2, 3, 6};
  const auto results = scripts.run();
  CHECK(results[0].status == RunStatus::ok_partial);
  CHECK(results[0].steps.n >= 6);
  CHECK(results[0].steps.median_s == 0.05);
}

TEST_CASE("a flood of output is read and not kept", "[run]") {
  const Scripts scripts({"head -c 60000000 /dev/zero | tr '\\0' 'x' | fold -w 200\n" + std::string(kSteps)});
  const auto results = scripts.run();
  CHECK(results[0].status == RunStatus::ok);
  CHECK(results[0].flags == std::vector<std::string>{"log_cut"});
  const auto kept = read_file(scripts.run_folder(0) + "/attempt-1.log");
  CHECK(kept.size() < (1U << 20U) + 200'000);
  CHECK(kept.find("iteration 6/ 9") != std::string::npos);  // the end is there
}

TEST_CASE("a passing failure is tried again, as often as allowed", "[run]") {
  Scripts scripts({"if [ -e $0.second ]; then\n" + std::string(kSteps) + "else touch $0.second; exit 1; fi\n"});
  scripts.campaign.limits.retries = 1;
  const auto results = scripts.run();
  CHECK(results[0].status == RunStatus::ok);
  CHECK(results[0].attempts == 2);
}

TEST_CASE("what cannot be started is a result", "[run]") {
  Scripts scripts({"true\n"});
  scripts.campaign.program = {"/no/such/program"};
  nd::identify_runs(scripts.campaign);
  const auto results = scripts.run();
  CHECK(results[0].status == RunStatus::launch_failed);
}

TEST_CASE("a stopped campaign goes on where it was", "[run]") {
  Scripts scripts({"sleep 300\n", kSteps});
  int asked = 0;
  scripts.options.stop = [&] { return ++asked > 5; };
  auto outcome = nd::run_campaign(scripts.campaign, scripts.options, kData);
  REQUIRE(outcome.has_value());
  CHECK(outcome->stopped);
  REQUIRE(outcome->results.size() == 1);
  CHECK(outcome->results[0].status == RunStatus::cancelled);
  scripts.options.stop = nullptr;
  scripts.campaign.limits.total_s = 3;
  outcome = nd::run_campaign(scripts.campaign, scripts.options, kData);
  REQUIRE(outcome.has_value());
  CHECK(outcome->results[0].status == RunStatus::timeout);
  CHECK(outcome->results[0].attempts == 2);
  CHECK(outcome->results[1].status == RunStatus::ok);
}

TEST_CASE("kill -9 of the harness: the next one ends the run and does it again, once", "[run]") {
  const Scripts scripts({kSteps, "echo $$ > $0.pid\necho x >> $0.count\nif [ $(wc -l < $0.count) = 1 ]; then sleep 300; fi\n" + std::string(kSteps)});
  const pid_t harness = fork();
  REQUIRE(harness >= 0);
  if (harness == 0) {
    (void)nd::run_campaign(scripts.campaign, scripts.options, kData);
    _exit(0);
  }
  const std::string pid_file = scripts.run_folder(1) + "/script.sh.pid";
  CHECK(within_seconds(15, [&] { return alive(pid_file); }));
  // While it lives, nobody else may use the folder.
  const auto second = nd::run_campaign(scripts.campaign, scripts.options, kData);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code() == nd::Errc::conflict);
  kill(harness, SIGKILL);
  waitpid(harness, nullptr, 0);
  const std::string orphan = read_file(pid_file);
  const auto results = scripts.run();
  REQUIRE(results.size() == 2);
  CHECK(results[0].attempts == 1);  // finished before
  CHECK(results[1].status == RunStatus::ok);
  CHECK(results[1].attempts == 2);
  CHECK(within_seconds(2, [&] { return read_file("/proc/" + std::to_string(std::stol(orphan)) + "/stat").find(") S ") == std::string::npos; }));
  const auto rows = nd::gather_results({scripts.options.folder});
  REQUIRE(rows.has_value());
  CHECK(rows->size() == 2);
}

TEST_CASE("a copy of the journal in the middle of a campaign holds whole results", "[run]") {
  // A power cut leaves database and write-ahead log as they are at that moment.
  Scripts scripts({kSteps, "sleep 300\n"});
  const Folder copy("copy");
  int asked = 0;
  scripts.options.stop = [&] {
    if (++asked != 40) return asked > 40;
    for (const char* suffix : {"", "-wal"})
      std::filesystem::copy_file(scripts.options.folder + "/campaign.sqlite" + suffix, copy.path(std::string("campaign.sqlite") + suffix), std::filesystem::copy_options::overwrite_existing);
    return false;
  };
  (void)nd::run_campaign(scripts.campaign, scripts.options, kData);
  const auto rows = nd::gather_results({copy.path("")});
  REQUIRE(rows.has_value());
  REQUIRE(rows->size() == 2);
  CHECK((*rows)[0].result.status == RunStatus::ok);
  CHECK((*rows)[1].result.status == RunStatus::skipped);  // "has not run": its attempt has no end
}

TEST_CASE("batch jobs are submitted, polled and read from their files", "[run]") {
  // Stand-ins for sbatch, sacct and scancel: a job is a background process, its state a file.
  Scripts scripts({kSteps, "exit 3\n", "true\n"});
  const auto tool = [&](const std::string& name, const std::string& text) {
    const auto path = scripts.folder.write(name, "#!/bin/sh\nS=" + scripts.folder.path("state") + "\n" + text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  };
  tool("srun", "shift\nexec \"$@\"\n");
  tool("scontrol", "echo localhost\n");
  tool("sbatch",
       "n=$(ls $S* 2>/dev/null | wc -l); n=$((n + 1)); o=$(sed -n 's/^#SBATCH --output=//p' \"$2\" | sed \"s/%j/$n/\")\n"
       "sh \"$2\" > $o 2>&1; c=$?; if [ $n = 3 ]; then echo 'OUT_OF_MEMORY|0:125' > $S$n; elif [ $c = 0 ]; then echo 'COMPLETED|0:0' > $S$n; else echo \"FAILED|$c:0\" > $S$n; fi\necho \"$n;cluster\"\n");
  tool("sacct", "for a; do [ \"$p\" = -j ] && n=$a; p=$a; done\ncat $S$n\n");
  const std::string path = scripts.folder.path("") + ":/usr/bin:/bin";
  const std::string before = getenv("PATH");
  setenv("PATH", path.c_str(), 1);
  scripts.campaign.launcher = "sbatch";
  scripts.campaign.launcher_options = {{"devices_per_node", "1"}};
  nd::identify_runs(scripts.campaign);
  scripts.options.environment = {"PATH=" + path};
  const auto results = scripts.run();
  setenv("PATH", before.c_str(), 1);
  REQUIRE(results.size() == 3);
  CHECK(results[0].status == RunStatus::ok);
  CHECK(results[0].steps.n == 5);
  CHECK(results[1].status == RunStatus::crash);
  CHECK(results[1].exit_code == 3);
  CHECK(results[2].status == RunStatus::oom_host);
}
