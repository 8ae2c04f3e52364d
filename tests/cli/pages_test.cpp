// SPDX-License-Identifier: Apache-2.0
// Pages that show the program's output show what it prints now; ./dev docs writes them.
#include <catch2/catch.hpp>
#include <string>

#include "process.hpp"

using nd::testing::read_file;

namespace {
const std::string kRoot = std::string(ND_TEST_SOURCE_DIR) + "/";
}  // namespace

TEST_CASE("README shows the output of its example", "[cli]") {
  const std::string page = read_file(kRoot + "README.md");
  const auto begin = page.find("<!-- demo"), end = page.find("<!-- /demo -->");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  auto run = nd::testing::run_nd({"-y", kRoot + "data/examples/hyper_v2/llama31_8b_train.yaml", "-d", "64", "-A", "A3", "-t", "5"});
  REQUIRE(run.status == 0);
  // The page runs it from the root of the project.
  for (auto at = run.out.find(kRoot); at != std::string::npos; at = run.out.find(kRoot)) run.out.erase(at, kRoot.size());
  CHECK(page.substr(begin, end - begin) == "<!-- demo: written by ./dev docs -->\n```\n" + run.out + "```\n");
}
