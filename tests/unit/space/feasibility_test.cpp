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

TEST_CASE("Among refusals of one request the one that came furthest is named") {
  // 64 devices, batch 64: of the combinations most end at a batch that does not come out, although with these values one does.
  const auto reason = [](std::initializer_list<std::string_view> conditions) {
    Scenario scenario = dense(64, 64);
    scenario.profile.can.schedules = "1f1b,gpipe,interleaved,zb_v,dualpipe";
    const auto found = messages(scenario, with(conditions));
    REQUIRE(found.size() == 1);
    return found.front();
  };
  using Catch::Contains;
  CHECK_THAT(reason({"schedule=zb_v", "pp=2", "vpp=1", "mb=8", "dp=8", "mbs=1"}), Contains("zb_v needs exactly 2 model chunks per stage"));
  CHECK_THAT(reason({"schedule=1f1b", "pp=2", "vpp=3", "mb=8"}), Contains("1f1b runs one model chunk per stage"));
  CHECK_THAT(reason({"schedule=dualpipe", "pp=2", "mb=2"}), Contains("dualpipe needs at least 2 micro-batches per stage"));
  CHECK_THAT(reason({"schedule=interleaved", "pp=2", "mb=1"}), Contains("interleaved needs at least as many micro-batches as stages"));
  CHECK_THAT(reason({"schedule=gpipe", "pp=1", "vpp=3"}), Contains("several chunks per stage (vpp > 1) need several stages (pp > 1)"));
  CHECK_THAT(reason({"dp=16", "mbs=2", "mb=4"}), Contains("a global batch of 64 cannot be reached on 64 devices"));
}

TEST_CASE("Every batch that is called reachable can be run") {
  for (const auto& conditions : {std::vector<std::string>{"pp=2", "mb=3"}, {"dp=8", "mb=3"}, {"tp=1", "pp=1", "cp=1"}, {"tp=4", "mbs=2", "dp=2"},
                                 {"schedule=interleaved", "pp=2", "mbs=2", "dp=4"}, {"schedule=dualpipe", "pp=2", "mbs=3", "tp=2"}}) {
    SearchSpace space;
    for (const auto& condition : conditions) space = *with_setting(space, condition, {});
    for (const std::int64_t batch : {5, 12, 17, 50}) {
      Scenario scenario = dense(16, batch);
      scenario.profile.can.schedules = "1f1b,interleaved,dualpipe";
      for (const auto& text : messages(scenario, space)) {
        const std::string mark = "nearest reachable: ";
        const auto at = text.find(mark);
        if (at == std::string::npos) continue;
        INFO(text);
        std::size_t from = at + mark.size();
        while (from < text.size() && text[from] != ')') {
          std::size_t used = 0;
          Scenario other = scenario;
          other.run.global_batch_size = std::stoll(text.substr(from), &used);
          CHECK(messages(other, space).empty());
          from += used;
          if (text.compare(from, 2, ", ") == 0) from += 2;
        }
      }
    }
  }
}

TEST_CASE("Conditions that exclude each other") {
  const auto found = messages(dense(8, 16), with({"tp=4", "pp=2", "cp=2"}));
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "error: --set tp: no legal strategy on 8 devices with tp=4 pp=2 cp=2: dp * tp * pp * cp is not the number of devices "
        "(widen or leave out one of: tp, pp, cp)");
}

}  // namespace nd
