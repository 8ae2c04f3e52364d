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

}  // namespace nd::testing
