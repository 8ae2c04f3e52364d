// SPDX-License-Identifier: Apache-2.0
#include "search/ranking.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "search/near_misses.hpp"

namespace nd::search {
namespace {

RankedCandidate candidate(double step, double peak, int dp) {
  RankedCandidate out;
  out.config.dp = dp;
  out.step = Seconds{step};
  out.peak = Bytes{peak};
  return out;
}

std::vector<int> order(const std::vector<RankedCandidate>& list) {
  std::vector<int> out;
  for (const auto& entry : list) out.push_back(entry.config.dp);
  return out;
}

}  // namespace

TEST_CASE("Step time decides, then peak memory, then the strategy") {
  Ranking ranking(0);
  for (const auto& entry : {candidate(2, 1, 1), candidate(1, 2, 2), candidate(1, 1, 4), candidate(1, 1, 3)}) ranking.add(entry);
  CHECK(order(ranking.take()) == std::vector<int>{3, 4, 2, 1});
}

TEST_CASE("A bounded ranking keeps the best, in any order of arrival") {
  // 200,000 candidates are more than the slack of the bounded ranking, so that it drops some on the way.
  std::vector<RankedCandidate> all;
  for (int i = 1; i <= 200'000; ++i) all.push_back(candidate((i * 7919) % 1009, i % 13, i));
  auto sorted = all;
  std::sort(sorted.begin(), sorted.end(), better);
  sorted.resize(10);
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    Ranking ranking(10);
    for (const auto& entry : all) ranking.add(entry);
    CHECK(order(ranking.take()) == order(sorted));
    std::shuffle(all.begin(), all.end(), random);
  }
}

TEST_CASE("The largest part of a stage") {
  StageMemory stage;
  stage.parameters = Bytes{3};
  stage.activations = Bytes{5};
  stage.logits = Bytes{4};
  CHECK(largest_part(stage).name == "activations");
  CHECK(largest_part(stage).bytes.value == 5);
}

}  // namespace nd::search
