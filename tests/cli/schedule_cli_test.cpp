// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

// torchtitan offers gpipe, 1f1b, interleaved, zb_v and dualpipe_v (data/frameworks/torchtitan.yaml).
const std::string kModel = "-y llama-3.1-8b -d 16 -A A3 -f torchtitan --set pp=4 --set mbs=1 -t 5 ";
const std::string kRun = kModel + "-b 64 ";

Json candidates(const std::string& options) {
  // Few sequences: gpipe keeps all of them, logits of 128 256 words included.
  const auto outcome = run_nd(kModel + "-b 16 " + options + " --json -");
  INFO(options << "\n" << outcome.err);
  REQUIRE(outcome.status == 0);
  return Json::parse(outcome.out)["candidates"];
}

std::set<std::string> schedules(const std::string& options) {
  std::set<std::string> out;
  for (const auto& c : candidates(options + " --all")) out.insert(c["schedule"].get<std::string>());
  return out;
}

/// Intervals of the passes per stage, in order of start; checks that they do not overlap.
std::size_t passes_without_overlap(const Json& trace) {
  std::map<int, std::vector<std::pair<double, double>>> by_stage;
  std::size_t count = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] == "p2p") continue;
    ++count;
    const double start = event["ts"].get<double>();
    by_stage[event["args"]["stage"].get<int>()].emplace_back(start, start + event["dur"].get<double>());
  }
  for (auto& [stage, passes] : by_stage) {
    std::sort(passes.begin(), passes.end());
    for (std::size_t i = 1; i < passes.size(); ++i) CHECK(passes[i].first >= passes[i - 1].second - 1e-6);
  }
  CHECK(by_stage.size() == 4);
  return count;
}

}  // namespace

TEST_CASE("--schedule chooses what is tried") {
  using Names = std::set<std::string>;
  CHECK(schedules("") == Names{"1f1b", "interleaved"});
  CHECK(schedules("--schedule auto") == Names{"gpipe", "1f1b", "interleaved", "zb_v", "dualpipe_v"});
  CHECK(schedules("--set sched=auto") == Names{"gpipe", "1f1b", "interleaved", "zb_v", "dualpipe_v"});
  CHECK(schedules("--schedule zero-bubble-v") == Names{"zb_v"});
  CHECK(schedules("--schedule gpipe,DualPipeV") == Names{"gpipe", "dualpipe_v"});
  CHECK(schedules("--schedule gpipe dualpipe_v") == Names{"gpipe", "dualpipe_v"});
  CHECK(schedules("--set sched!=interleaved") == Names{"1f1b"});
}

TEST_CASE("A schedule that the framework does not have is refused by name") {
  const auto outcome = run_nd(kRun + "--schedule dualpipe");
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Contains("torchtitan does not offer dualpipe, it offers gpipe, 1f1b, interleaved, zb_v, dualpipe_v"));
  const auto unknown = run_nd(kRun + "--schedule zb_w");
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Contains("did you mean 'zb_"));
  const auto shape = run_nd(kRun + "--schedule zb_v --set vpp=4");
  CHECK(shape.status != 0);
  CHECK_THAT(shape.err, Contains("zb_v needs exactly 2 model chunks per stage"));
  CHECK(run_nd(kRun + "--schedule auto gpipe").status == 2);
}

TEST_CASE("--list schedules tells title, rule and whether the backward is split") {
  const auto list = run_nd("--list schedules").out;
  for (const char* part : {"ZB-V; needs vpp = 2; backward split in two halves", "1F1B; needs vpp = 1; backward whole", "also: zero_bubble_v"})
    CHECK_THAT(list, Contains(part));
}

TEST_CASE("--trace: every pass once, none over another") {
  const Folder folder("trace");
  struct Case {
    const char* options;
    std::size_t chunks, kinds;
  };
  // dp = 4 for tp = cp = 1: 16 micro-batches of one sequence.
  for (const Case& one : {Case{"--schedule 1f1b", 1, 2}, Case{"--schedule interleaved --set vpp=2", 2, 2}, Case{"--schedule zb_v", 2, 3}}) {
    INFO(one.options);
    const auto outcome = run_nd(kRun + one.options + " --set tp=1 --set cp=1 -v 0 -M 400GB --trace " + folder.path("t.json"));
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    CHECK(passes_without_overlap(Json::parse(read_file(folder.path("t.json")))) == 4 * 16 * one.chunks * one.kinds);
  }
}

TEST_CASE("--trace follows --explain") {
  const Folder folder("trace_rank");
  REQUIRE(run_nd(kRun + "--explain 3 --trace " + folder.path("a.json")).status == 0);
  REQUIRE(run_nd(kRun + "--trace " + folder.path("b.json")).status == 0);
  CHECK(read_file(folder.path("a.json")) != read_file(folder.path("b.json")));
}

TEST_CASE("--report: one page that needs nothing else") {
  const Folder folder("report");
  const auto outcome = run_nd(kRun + "--report " + folder.path("r.html"));
  REQUIRE(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("wrote " + folder.path("r.html")));
  const std::string page = read_file(folder.path("r.html"));
  for (const char* part : {"<!doctype html>", "What was asked", "Best strategies", "Memory of a device", "Time of a step",
                           "The pipeline, pass by pass", "stage 3", "</html>"})
    CHECK_THAT(page, Contains(part));
  // Names of the SVG namespace are no links; nothing is loaded.
  for (const char* part : {"src=", "href=", "<script", "@import", "url("}) CHECK_THAT(page, !Contains(part));
  const auto nothing = run_nd("-y llama-3.1-405b -d 8 -A A3 -v 0 --report " + folder.path("n.html"));
  CHECK(nothing.status == 1);
  CHECK_THAT(read_file(folder.path("n.html")), Contains("Nothing fits"));
}

TEST_CASE("A page or trace that cannot be written is status 4") {
  CHECK(run_nd(kRun + "-v 0 --report /proc/none/r.html").status == 4);
  CHECK(run_nd(kRun + "-v 0 --trace /proc/none/t.json").status == 4);
  // Of several files none appears when one cannot be written.
  const Folder folder("all_or_none");
  const auto outcome = run_nd(kRun + "-v 0 -o " + folder.path("out") + " --report " + folder.path("r.html") + " --json " + folder.path("s.json") +
                              " --ranking_csv " + folder.path("r.csv") + " --trace /proc/none/t.json");
  CHECK(outcome.status == 4);
  CHECK(outcome.err == "error: /proc/none/t.json: cannot write the file: No such file or directory\n");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path("."))) {
    INFO(entry.path());
    CHECK(entry.is_directory());
  }
}

}  // namespace nd::testing
