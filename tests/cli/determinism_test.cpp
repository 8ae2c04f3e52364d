// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "process.hpp"

namespace nd::testing {

TEST_CASE("Documents and tables are the same bytes for every -j and every run") {
  const Folder folder("determinism");
  const auto run = [&folder](const std::string& name, const std::string& jobs) {
    const auto outcome = run_nd("-y llama-3.1-8b -d 32 -A A3 -j " + jobs + " --json " + folder.path(name + ".json") + " --ranking_csv " +
                                folder.path(name + ".csv"));
    REQUIRE(outcome.status == 0);
    CHECK(outcome.err.empty());  // more workers than cores once made TBB talk
    return outcome.out.substr(0, outcome.out.find("wrote "));
  };
  const auto table = run("first", "1");
  const auto json = read_file(folder.path("first.json"));
  const auto csv = read_file(folder.path("first.csv"));
  REQUIRE(json.size() > 1000);
  REQUIRE(csv.size() > 1000);
  for (const char* jobs : {"1", "2", "3", "8", "512"}) {
    INFO("-j " << jobs);
    CHECK(run("again", jobs) == table);
    CHECK(read_file(folder.path("again.json")) == json);
    CHECK(read_file(folder.path("again.csv")) == csv);
  }
}

TEST_CASE("What a bounded search with plans counts is the same for every -j") {
  // Large enough that workers meet different misses: what they want to know of one must not decide how it is counted.
  const Folder folder("determinism_plans");
  const auto document = [&folder](const std::string& jobs) {
    REQUIRE(run_nd("-y llama-3.1-70b -d 64 -A A2 --seq-length 8192 -ar -v 0 -j " + jobs + " --json " + folder.path("plans.json")).status == 0);
    return read_file(folder.path("plans.json"));
  };
  const auto first = document("1");
  REQUIRE(first.size() > 1000);
  for (const char* jobs : {"2", "3", "8"}) {
    INFO("-j " << jobs);
    CHECK(document(jobs) == first);
  }
}

}  // namespace nd::testing
