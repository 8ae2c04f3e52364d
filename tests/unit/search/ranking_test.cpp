// SPDX-License-Identifier: Apache-2.0
#include "search/ranking.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "search/near_misses.hpp"
#include "search/ranking_store.hpp"

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
  Ranking ranking(RankOrder{}, 0);
  for (const auto& entry : {candidate(2, 1, 1), candidate(1, 2, 2), candidate(1, 1, 4), candidate(1, 1, 3)}) ranking.add(entry);
  CHECK(order(ranking.take()) == std::vector<int>{3, 4, 2, 1});
}

TEST_CASE("A bounded ranking keeps the best, in any order of arrival") {
  std::vector<RankedCandidate> all;
  for (int i = 1; i <= 200'000; ++i) all.push_back(candidate((i * 7919) % 1009, i % 13, i));
  auto sorted = all;
  std::sort(sorted.begin(), sorted.end(), RankOrder{});
  sorted.resize(10);
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    Ranking ranking(RankOrder{}, 10);
    for (const auto& entry : all) ranking.add(entry);
    CHECK(order(ranking.take()) == order(sorted));
    std::shuffle(all.begin(), all.end(), random);
  }
}

TEST_CASE("Steps that agree to nine digits are a tie, which memory, then simplicity, then the degrees break") {
  // 1 + 1e-10 is 0.1 * 2^-30 away: the same figure. 1 + 1e-8 is ten times 2^-30 away: another.
  CHECK(tie_value(1.0) == tie_value(1.0 + 1e-10));
  CHECK(tie_value(1.0) < tie_value(1.0 + 1e-8));
  CHECK(tie_value(0.0) == 0.0);
  const RankOrder before;
  CHECK(before(candidate(1.0 + 1e-10, 1, 9), candidate(1.0, 2, 1)));
  auto simple = candidate(1, 1, 8), complex = candidate(1, 1, 4);
  complex.config.tp = 2;  // two dimensions in use, fewer degrees first otherwise
  CHECK(before(simple, complex));
  CHECK_FALSE(before(complex, simple));
  CHECK_FALSE(before(simple, simple));
}

TEST_CASE("The memory objective ranks by peak, then by step") {
  Ranking ranking(RankOrder(Objective::memory), 0);
  for (const auto& entry : {candidate(1, 3, 1), candidate(2, 2, 2), candidate(1, 2, 3)}) ranking.add(entry);
  CHECK(order(ranking.take()) == std::vector<int>{3, 2, 1});
}

TEST_CASE("The front of time against memory is what nothing else beats on both, in any order of arrival") {
  std::mt19937 random(5);
  std::vector<RankedCandidate> all;
  for (int i = 1; i <= 300; ++i) all.push_back(candidate(1 + static_cast<int>(random() % 40), 1 + static_cast<int>(random() % 40), i));
  // Plain statement of the same: kept when no other is at least as good on both (of equals, the first of the order).
  std::vector<RankedCandidate> expected;
  for (const auto& one : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&one](const RankedCandidate& other) {
      const bool as_good = other.step <= one.step && other.peak <= one.peak;
      const bool equal = other.step == one.step && other.peak == one.peak;
      return as_good && (!equal || RankOrder{}(other, one));
    });
    if (!beaten) expected.push_back(one);
  }
  std::sort(expected.begin(), expected.end(), RankOrder{});
  for (int repeat = 0; repeat < 5; ++repeat) {
    ParetoFront front;
    for (const auto& entry : all) front.add(entry);
    CHECK(order(front.front()) == order(expected));
    std::shuffle(all.begin(), all.end(), random);
  }
}

TEST_CASE("A stored ranking comes back whole and in order, whatever the runs") {
  std::mt19937 random(11);
  std::vector<RankedCandidate> all;
  for (int i = 1; i <= 20'000; ++i) all.push_back(candidate(1 + static_cast<int>(random() % 500), 1 + static_cast<int>(random() % 50), i));
  auto expected = all;
  std::sort(expected.begin(), expected.end(), RankOrder{});
  for (const std::size_t most : {std::size_t{7}, std::size_t{512}, std::size_t{513}, std::size_t{30'000}}) {
    RankingStore store{RankOrder{}};
    std::vector<RankedCandidate> run;
    for (std::size_t i = 0; i < all.size(); ++i) {
      run.push_back(all[i]);
      // Runs of 1 to `most`; with 7 there are thousands of them.
      if (run.size() >= 1 + random() % most) store.add(run);
    }
    store.add(run);
    CHECK(run.empty());
    std::vector<RankedCandidate> found;
    store.for_each([&found](const RankedCandidate& one) { found.push_back(one); });
    CHECK(found == expected);
  }
  RankingStore empty{RankOrder{}};
  empty.for_each([](const RankedCandidate&) { FAIL("nothing was added"); });
}

TEST_CASE("Near misses keep the closest of each set of degrees, in any order of arrival") {
  std::mt19937 random(7);
  std::vector<RankedCandidate> all;
  for (int i = 0; i < 400; ++i) all.push_back(candidate(0, 100 + static_cast<int>(random() % 1000), 1 + i % 20));
  std::vector<std::pair<double, int>> expected;  // smallest peak by dp
  for (int dp = 1; dp <= 20; ++dp) {
    double least = 1e9;
    for (const auto& one : all)
      if (one.config.dp == dp) least = std::min(least, one.peak.value);
    expected.emplace_back(least, dp);
  }
  std::sort(expected.begin(), expected.end());
  expected.resize(5);
  for (int repeat = 0; repeat < 5; ++repeat) {
    NearMisses misses(5);
    for (const auto& one : all) misses.add(one.config, one.peak);
    std::vector<std::pair<double, int>> found;
    for (const auto& miss : misses.closest()) found.emplace_back(miss.peak.value, miss.config.dp);
    CHECK(found == expected);
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
