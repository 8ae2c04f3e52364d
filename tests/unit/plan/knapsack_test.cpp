// SPDX-License-Identifier: Apache-2.0
#include "plan/knapsack.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <random>

using nd::plan::choose_options;
using nd::plan::kMoments;
using nd::plan::LayerChoice;
using nd::plan::LayerGroup;
using nd::plan::MomentBytes;

namespace {

/// Every layer on its own, every option tried: options ^ layers combinations.
std::optional<double> brute_force(const std::vector<LayerGroup>& groups, const MomentBytes& budget) {
  std::vector<const LayerGroup*> layers;
  for (const auto& group : groups) layers.insert(layers.end(), static_cast<std::size_t>(group.layers), &group);
  std::optional<double> best;
  std::vector<std::size_t> option(layers.size(), 0);
  while (true) {
    double seconds = 0;
    MomentBytes bytes{};
    for (std::size_t i = 0; i < layers.size(); ++i) {
      seconds += layers[i]->options[option[i]].seconds;
      for (std::size_t m = 0; m < kMoments; ++m) bytes[m] += layers[i]->options[option[i]].bytes[m];
    }
    if (bytes[0] <= budget[0] && bytes[1] <= budget[1] && (!best || seconds < *best)) best = seconds;
    std::size_t i = 0;
    while (i < layers.size() && ++option[i] == layers[i]->options.size()) option[i++] = 0;
    if (i == layers.size()) return best;
  }
}

/// Whole numbers, so that sums are exact in any order.
std::vector<LayerGroup> random_groups(std::mt19937& random) {
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<LayerGroup> groups(static_cast<std::size_t>(draw(1, 3)));
  for (auto& group : groups) {
    group.layers = draw(0, 3);
    group.options.resize(static_cast<std::size_t>(draw(1, 3)));
    for (auto& option : group.options) {
      option.seconds = draw(1, 20);
      for (auto& bytes : option.bytes) bytes = draw(0, 30);
    }
  }
  return groups;
}

/// What the layers of a choice add up to.
LayerChoice priced(const std::vector<LayerGroup>& groups, const LayerChoice& choice) {
  LayerChoice sum;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t o = 0; o < groups[g].options.size(); ++o) {
      const auto n = static_cast<double>(choice.layers[g][o]);
      sum.seconds += n * groups[g].options[o].seconds;
      for (std::size_t m = 0; m < kMoments; ++m) sum.bytes[m] += n * groups[g].options[o].bytes[m];
    }
  return sum;
}

}  // namespace

TEST_CASE("the fastest choice that fits equals every combination tried", "[plan]") {
  std::mt19937 random(20260131);
  int solved = 0, refused = 0, by_second_moment = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto groups = random_groups(random);
    const auto draw = [&random](int high) { return static_cast<double>(std::uniform_int_distribution<int>(0, high)(random)); };
    const MomentBytes budget{draw(150), draw(150)};
    const auto expected = brute_force(groups, budget);
    const auto choice = choose_options(groups, budget);
    INFO("round " << round);
    REQUIRE(choice.has_value() == expected.has_value());
    if (!choice) {
      ++refused;
      continue;
    }
    ++solved;
    CHECK(choice->seconds == *expected);
    const auto sum = priced(groups, *choice);
    CHECK(sum.seconds == choice->seconds);
    CHECK(sum.bytes == choice->bytes);
    CHECK(choice->bytes[0] <= budget[0]);
    CHECK(choice->bytes[1] <= budget[1]);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::int64_t layers = 0;
      for (const auto n : choice->layers[g]) layers += n;
      CHECK(layers == groups[g].layers);
    }
    const auto alone = choose_options(groups, {budget[0], std::numeric_limits<double>::infinity()});
    REQUIRE(alone);
    if (alone->seconds < choice->seconds) ++by_second_moment;
  }
  // Both outcomes and the second moment were exercised.
  CHECK(solved > 1000);
  CHECK(refused > 100);
  CHECK(by_second_moment > 100);
}

TEST_CASE("more room never makes a stage slower", "[plan]") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto groups = random_groups(random);
    double before = std::numeric_limits<double>::infinity();
    for (double room = 0; room <= 300; room += 10) {
      const auto choice = choose_options(groups, {room, room});
      if (!choice) {
        CHECK(before == std::numeric_limits<double>::infinity());
        continue;
      }
      CHECK(choice->seconds <= before);
      before = choice->seconds;
    }
  }
}

TEST_CASE("layers with more micro-batches in flight are recomputed first", "[plan]") {
  // Two chunks of four layers, 10 bytes a layer and micro-batch kept, 1 when recomputed; 3 against 1 in flight.
  // Everything kept: 4 * 30 + 4 * 10 = 160. Each layer recomputed saves 27 in the first chunk, 9 in the second, for one second
  // either way; with 100 bytes of room 60 must go: three layers of the first (81).
  const std::vector<LayerGroup> groups{{4, {{{30, 0}, 3}, {{3, 0}, 4}}}, {4, {{{10, 0}, 3}, {{1, 0}, 4}}}};
  const auto choice = choose_options(groups, {100, 0});
  REQUIRE(choice);
  CHECK(choice->layers == std::vector<std::vector<std::int64_t>>{{1, 3}, {4, 0}});
  CHECK(choice->seconds == 8 * 3 + 3);
  CHECK(choice->bytes[0] == 160 - 81);
}

TEST_CASE("with room for everything nothing is recomputed, with room for nothing there is no choice", "[plan]") {
  const std::vector<LayerGroup> groups{{126, {{{8, 8}, 1}, {{5, 8}, 1.2}, {{1, 1}, 1.5}}}};
  const auto all = choose_options(groups, {1e12, 1e12});
  REQUIRE(all);
  CHECK(all->layers[0] == std::vector<std::int64_t>{126, 0, 0});
  CHECK_FALSE(choose_options(groups, {125, 1e12}));
  const auto smallest = choose_options(groups, {126, 1e12});
  REQUIRE(smallest);
  CHECK(smallest->layers[0] == std::vector<std::int64_t>{0, 0, 126});
  CHECK(choose_options({}, {0, 0})->seconds == 0);
}
