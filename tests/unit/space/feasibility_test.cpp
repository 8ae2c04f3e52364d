// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "nd/search_space.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

SearchSpace with(std::initializer_list<std::string_view> conditions) {
  SearchSpace space;
  for (const auto condition : conditions) {
    auto next = with_setting(space, condition, {});
    REQUIRE(next);
    space = *next;
  }
  return space;
}

std::vector<std::string> messages(const Scenario& scenario, const SearchSpace& space) {
  std::vector<std::string> out;
  for (const auto& diagnostic : check_space(scenario, space)) out.push_back(to_text(diagnostic));
  return out;
}

Scenario dense(std::int64_t devices, std::int64_t batch) {
  return testing::make_scenario(testing::small_dense(), {.devices = devices, .global_batch = batch, .seq_length = 64});
}

}  // namespace

TEST_CASE("A space with strategies has no problems") {
  CHECK(messages(dense(8, 16), {}).empty());
  CHECK(messages(dense(8, 16), with({"tp=2,4", "pp<=2"})).empty());
}

TEST_CASE("An impossible degree is refused with the nearest possible ones") {
  // 8 heads on 64 devices: tp can be 1, 2, 4, 8.
  CHECK(messages(dense(64, 64), with({"tp=3"})) ==
        std::vector<std::string>{"error: --set tp: tp=3 is impossible on 64 devices: dp * tp * pp * cp is not the number of devices "
                                 "(nearest possible: 2, 4)"});
  CHECK(messages(dense(64, 64), with({"tp=16"})) ==
        std::vector<std::string>{"error: --set tp: tp=16 is impossible on 64 devices: the attention heads do not divide by tp "
                                 "(nearest possible: 8)"});
}

TEST_CASE("Problems of several dimensions are reported together") {
  CHECK(messages(dense(64, 64), with({"tp=3", "pp=5"})).size() == 2);
}

TEST_CASE("One impossible value of a list is a warning") {
  const auto found = check_space(dense(8, 16), with({"tp=2,3"}));
  REQUIRE(found.size() == 1);
  CHECK(found.front().severity == Severity::warning);
}

TEST_CASE("A batch that cannot be reached is refused with the nearest reachable ones") {
  // dp = 8 leaves multiples of 8.
  CHECK(messages(dense(8, 12), with({"tp=1", "pp=1", "cp=1"})) ==
        std::vector<std::string>{"error: global_batch_size: a global batch of 12 cannot be reached on 8 devices with tp=1 pp=1 cp=1 "
                                 "(nearest reachable: 8, 16)"});
}

TEST_CASE("Conditions that exclude each other") {
  const auto found = messages(dense(8, 16), with({"tp=4", "pp=2", "cp=2"}));
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "error: --set tp: no legal strategy on 8 devices with tp=4 pp=2 cp=2: dp * tp * pp * cp is not the number of devices "
        "(widen or leave out one of: tp, pp, cp)");
}

}  // namespace nd
