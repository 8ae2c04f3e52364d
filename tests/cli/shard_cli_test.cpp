// SPDX-License-Identifier: Apache-2.0
// Searches in parts, objectives, limits, interruption.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "process.hpp"
#include "support/json_schema.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

const std::string kRequest = "-y llama-3.1-8b -d 16 -A A3 -b 64 --set mbs=1,2 ";

Json parsed(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  Json document = Json::parse(outcome.out);
  const Json schema = Json::parse(read_file(std::string(ND_TEST_DATA_DIR) + "/schema/search.schema.json"));
  for (const auto& problem : schema_problems(document, schema)) FAIL_CHECK(problem);
  return document;
}

Json search(const std::string& options) { return parsed(run_nd(kRequest + options + " --json -")); }

/// Runs the three parts of a request and merges them, in an order that is not theirs.
Outcome in_parts(const std::string& request, const Folder& folder) {
  for (const char* part : {"1", "2", "3"}) {
    const auto outcome = run_nd(request + " --shard " + part + "/3 --part " + folder.path(std::string("part") + part));
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
  }
  return run_nd("merge " + folder.path("part3") + " " + folder.path("part1") + " " + folder.path("part2") + " -j 2");
}

}  // namespace

TEST_CASE("Three parts merged are the bytes of one search") {
  struct Case {
    const char* options;
    int status;
  };
  for (const auto& [options, status] : {Case{"", 0}, Case{"-t 7 --explain 3", 0}, Case{"--json -", 0}, Case{"--pareto --objective memory", 0}, Case{"-v 3", 0},
                                        Case{"-M 4GB", 1}, Case{"--json - --all", 0}}) {
    INFO(options);
    const Folder folder("parts");
    const auto whole = run_nd(kRequest + options);
    const auto merged = in_parts(kRequest + options, folder);
    CHECK(whole.status == status);
    CHECK(merged.status == status);
    CHECK(merged.out == whole.out);
    CHECK(merged.err.empty());
  }
}

TEST_CASE("Files that the command of the parts asks for are written by the merge, with the same bytes") {
  const Folder folder("part_files");
  const std::string files = " --ranking_csv " + folder.path("r.csv") + " --report " + folder.path("r.html") + " --trace " + folder.path("t.json");
  REQUIRE(run_nd(kRequest + files).status == 0);
  const std::string csv = read_file(folder.path("r.csv")), page = read_file(folder.path("r.html")), trace = read_file(folder.path("t.json"));
  for (const char* name : {"r.csv", "r.html", "t.json"}) std::filesystem::remove(folder.path(name));
  REQUIRE(in_parts(kRequest + files, folder).status == 0);
  CHECK(read_file(folder.path("r.csv")) == csv);
  CHECK(read_file(folder.path("r.html")) == page);
  CHECK(read_file(folder.path("t.json")) == trace);
}

TEST_CASE("Parts that do not belong together are refused") {
  const Folder folder("wrong_parts");
  const auto part = [&](const std::string& request, const std::string& shard, const std::string& name) {
    REQUIRE(run_nd(request + " --shard " + shard + " --part " + folder.path(name)).status == 0);
    return folder.path(name);
  };
  const std::string a = part(kRequest, "1/2", "a"), b = part(kRequest, "2/2", "b"), other = part(kRequest + "-t 3", "2/2", "other"), third = part(kRequest, "2/3", "third");
  const auto refused = [](const std::string& line, int status, const char* text) {
    INFO(line);
    const auto outcome = run_nd(line);
    CHECK(outcome.status == status);
    CHECK_THAT(outcome.err, Contains(text));
    CHECK(outcome.out.empty());
  };
  refused("merge " + a, 3, "part 2/2 is missing");
  refused("merge " + a + " " + a, 3, "is there twice");
  refused("merge " + a + " " + other, 3, "is a part of another request");
  refused("merge " + a + " " + third, 3, "does not belong to a search of 2 parts");
  refused("merge " + a + " " + folder.path("nothing"), 3, "nothing");
  refused("merge " + a + " " + folder.write("text", "{}"), 3, "is no partial result");
  std::string damaged = read_file(b);
  damaged.resize(damaged.size() / 2);
  refused("merge " + a + " " + folder.write("damaged", damaged), 3, "is no partial result");
  std::string foreign = read_file(b);
  foreign.replace(foreign.find("\"version\":\""), 12, "\"version\":\"9");
  refused("merge " + a + " " + folder.write("foreign", foreign), 3, "another version");
  refused("merge", 2, "error: ");
  refused("merge " + a + " " + b + " -t 3", 2, "cannot be combined with -t");
  refused(kRequest + "--shard 3/2 --part x", 2, "--shard: '3/2' is no part of a search");
  refused(kRequest + "--shard 1 --part x", 2, "is no part of a search");
  refused(kRequest + "--shard 1/2", 2, "--shard: needs --part");
}

TEST_CASE("Parts of an input that has changed since are refused") {
  const Folder folder("changed");
  std::string config = read_file(std::string(ND_TEST_DATA_DIR) + "/models/llama-3.1-8b/config.json");
  const std::string path = folder.write("config.json", config);
  const std::string request = "-y " + path + " -d 16 -A A3 -b 64 --set mbs=1";
  for (const char* part : {"1", "2"}) REQUIRE(run_nd(request + " --shard " + part + "/2 --part " + folder.path(part)).status == 0);
  REQUIRE(run_nd("merge " + folder.path("1") + " " + folder.path("2")).status == 0);
  config.replace(config.find("\"vocab_size\": 128256"), 20, "\"vocab_size\": 128000");
  folder.write("config.json", config);
  const auto outcome = run_nd("merge " + folder.path("1") + " " + folder.path("2"));
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.err, Contains("has changed since"));
}

TEST_CASE("Objectives change the order or the unit") {
  const auto time = search(""), memory = search("--objective memory"), cost = search("--objective cost --price 2");
  CHECK(time["objective"] == "time");
  CHECK(memory["exhaustive"] == true);
  double last = 0;
  for (const auto& one : memory["candidates"]) {
    CHECK(one["memory_gib"]["peak"].get<double>() >= last);
    last = one["memory_gib"]["peak"];
  }
  CHECK(memory["candidates"][0]["memory_gib"]["peak"].get<double>() <= time["candidates"][0]["memory_gib"]["peak"].get<double>());
  // 16 devices at 2 an hour: 32 / 3600 a second.
  CHECK(cost["objective_per_step_second"].get<double>() == Approx(32.0 / 3600));
  CHECK(cost["candidates"][0]["step_time_s"] == time["candidates"][0]["step_time_s"]);
  CHECK_THAT(run_nd(kRequest + "--objective cost --price 2").out, Contains("cost/step") && Contains("ranked by cost"));
  const auto priceless = run_nd(kRequest + "--objective cost");
  CHECK(priceless.status == 2);
  CHECK_THAT(priceless.err, Contains("error: --objective: cost needs a price"));
  CHECK_THAT(run_nd(kRequest + "--objective speed").err, Contains("error: --objective: 'speed' is no objective"));
}

TEST_CASE("--pareto: nothing of the ranking beats a member of the front, everything else is beaten") {
  const auto document = search("--pareto --all");
  const auto& front = document["pareto"];
  REQUIRE(front.size() >= 2);
  const auto at = [](const Json& one) { return std::pair(one["step_time_s"].get<double>(), one["memory_gib"]["peak"].get<double>()); };
  for (const auto& one : document["candidates"]) {
    const auto [step, peak] = at(one);
    bool matched = false;
    for (const auto& member : front) {
      const auto [best_step, best_peak] = at(member);
      const bool beaten = best_step <= step && best_peak <= peak;
      matched = matched || beaten;
      CHECK_FALSE((step < best_step * (1 - 1e-9) && peak < best_peak));
    }
    CHECK(matched);
  }
  CHECK_THAT(run_nd(kRequest + "--pareto").out, Contains("no other strategy is both faster and smaller"));
}

TEST_CASE("-e, -ee, -eee: candidates below the best, for the dimensions they use") {
  const auto uses = [](const Json& list, const char* dimension) {
    std::int64_t count = 0;
    for (const auto& one : list) count += one[dimension].get<std::int64_t>() > 1 ? 1 : 0;
    return count;
  };
  for (const char* options : {"-t 3 -e 4 -l TP PP CP", "-t 3 -ee 4 -l TP PP CP", "-t 3 -eee 4 -l TP PP CP"}) {
    INFO(options);
    const auto document = search(options);
    const auto& best = document["candidates"];
    const auto& more = document["additional"];
    REQUIRE(best.size() == 3);
    std::int64_t last = 3;
    for (const auto& one : more) {
      CHECK(one["rank"].get<std::int64_t>() > last);
      last = one["rank"];
    }
    const bool in_all = std::string(options).find("-e 4") != std::string::npos;
    for (const char* dimension : {"tp", "pp", "cp"}) CHECK(uses(more, dimension) + (in_all ? uses(best, dimension) : 0) >= 4);
    if (std::string(options).find("-eee") != std::string::npos) CHECK(more.size() == 12);
  }
  CHECK(search("-t 3")["additional"].empty());
  CHECK_THAT(run_nd(kRequest + "-t 3 -ee 1").out, Contains("additional candidates, for the dimensions they use"));
  CHECK(run_nd(kRequest + "-e 1 -eee 1").status == 2);
}

TEST_CASE("A time limit ends a long search with the best so far, which is said") {
  const auto outcome = run_nd("-y deepseek-v3 -d 16384 -A A3 --schedule auto --objective memory --time-limit 2 --json -");
  INFO(outcome.err);
  CHECK(outcome.status <= 1);
  CHECK(Json::parse(outcome.out)["end"] == "time_limit");
  CHECK(search("--time-limit 600")["end"] == "complete");
  CHECK(run_nd(kRequest + "--time-limit 0").status == 2);
}

TEST_CASE("SIGINT ends a long search with what was found, which is said") {
  const auto outcome = run_nd_and_signal({"-y", "deepseek-v3", "-d", "16384", "-A", "A3", "--schedule", "auto", "--objective", "memory", "-v", "3"}, "strategies done", SIGINT);
  CHECK(outcome.status <= 1);
  CHECK_THAT(outcome.out, Contains("INCOMPLETE: stopped"));
  CHECK_THAT(outcome.err, Contains("stopping: what was found so far follows"));
}

TEST_CASE("However a search is killed, its ranking is there whole or not at all, and nothing else is") {
  const std::vector<std::string> request{"-y", "llama-3.1-8b", "-d", "64", "-A", "A3", "-b", "128", "-t", "3", "-v", "0"};
  const Folder folder("killed");
  const auto to = [&request](const std::string& path) {
    auto words = request;
    words.insert(words.end(), {"--ranking_csv", path});
    return words;
  };
  REQUIRE(run_nd(to(folder.path("whole.csv"))).status == 0);
  const std::string whole = read_file(folder.path("whole.csv"));
  CHECK(std::count(whole.begin(), whole.end(), '\n') > 1000);
  int killed = 0;
  for (const int milliseconds : {5, 20, 50, 100, 200, 300, 400, 600}) {
    CAPTURE(milliseconds);
    const Folder place("killed_at");
    const auto outcome = run_nd_and_kill(to(place.path("r.csv")), milliseconds);
    if (outcome.status == 128 + SIGKILL) ++killed;
    else CHECK(outcome.status == 0);
    if (place.files() > 0) CHECK(read_file(place.path("r.csv")) == whole);
    CHECK(place.files() <= 1);
  }
  CHECK(killed > 0);
}

}  // namespace nd::testing
