// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "report/validation_pattern.hpp"

using nd::report::match_pattern;
using Captures = std::vector<std::string>;

TEST_CASE("patterns match the whole text in any case", "[validation]") {
  CHECK(match_pattern("use-mc2", "use-mc2"));
  CHECK(match_pattern("USE-MC2", "use-mc2"));
  CHECK_FALSE(match_pattern("use-mc", "use-mc2"));
  CHECK_FALSE(match_pattern("use-mc2", "use-mc"));
  CHECK(match_pattern("*vTrain*", "VIA-Research/vTrain data"));
  CHECK(match_pattern("*", ""));
  CHECK(match_pattern("", ""));
  CHECK_FALSE(match_pattern("", "x"));
}

TEST_CASE("numbers and runs are captured", "[validation]") {
  CHECK(match_pattern("container #", "container 26.02.01") == Captures{"26.02.01"});
  CHECK(match_pattern("node fabric: # GB/s intra, # Gbit/s inter", "node fabric: 150 GB/s intra, 800 Gbit/s inter") == Captures{"150", "800"});
  CHECK(match_pattern("num-layer-list #@", "num-layer-list 1,2,2,1") == Captures{"1", ",2,2,1"});
  CHECK_FALSE(match_pattern("container #", "container dev"));
  CHECK_FALSE(match_pattern("lora-r #", "lora-r 16x"));
}

TEST_CASE("a backslash takes the next character as it is", "[validation]") {
  CHECK(match_pattern("*README\\@1.0", "x README@1.0"));
  CHECK_FALSE(match_pattern("a\\*b", "axb"));
  CHECK(match_pattern("([0]\\*#+[1]\\*#)", "([0]*3+[1]*12)") == Captures{"3", "12"});
}

TEST_CASE("a run backs off until the rest matches", "[validation]") {
  CHECK(match_pattern("*ab*ab", "ab ab ab"));
  CHECK_FALSE(match_pattern("*ab*ac", "ab ab ab"));
  CHECK(match_pattern("@-@", "a-b-c") == Captures{"a", "b-c"});
}

TEST_CASE("captures are put into values", "[validation]") {
  CHECK(nd::report::expand_captures("$1$2", {"1", ",2"}) == "1,2");
  CHECK(nd::report::expand_captures("r$1", {"1.3"}) == "r1.3");
  CHECK(nd::report::expand_captures("$3", {"1"}).empty());
  CHECK(nd::report::expand_captures("cost $", {}) == "cost $");
}

TEST_CASE("notes are phrases between semicolons", "[validation]") {
  CHECK(nd::report::note_phrases("a; b c ;;d") == Captures{"a", "b c", "d"});
  CHECK(nd::report::note_phrases("").empty());
}
