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

TEST_CASE("Bounds and exclusions get the reason of the first value they admit, at their own place") {
  const auto only_message = [](const Scenario& scenario, std::initializer_list<std::string_view> conditions) {
    const auto found = messages(scenario, with(conditions));
    REQUIRE(found.size() == 1);
    return found.front();
  };
  const Scenario scenario = dense(64, 64);
  CHECK(only_message(scenario, {"ep>=2"}) == "error: --set ep: ep>=2 is impossible on 64 devices: the model has no experts (nearest possible: 1)");
  CHECK(only_message(scenario, {"ep!=1"}) == "error: --set ep: ep!=1 is impossible on 64 devices: the model has no experts (nearest possible: 1)");
  CHECK(only_message(scenario, {"dp>=65"}) ==
        "error: --set dp: dp>=65 is impossible on 64 devices: dp * tp * pp * cp is not the number of devices (nearest possible: 64)");
  CHECK(only_message(scenario, {"mbs>=65"}) ==
        "error: --set mbs: mbs>=65 is impossible on 64 devices: dp * mbs * mb is not the global batch (nearest possible: 64)");
  CHECK(only_message(scenario, {"tp>=4", "tp<=3"}) == "error: --set tp: tp>=4 tp<=3 leaves no value (widen or leave out one of the conditions)");
  CHECK(only_message(scenario, {"tp=2", "tp>=4"}) == "error: --set tp: tp=2 tp>=4 leaves no value (widen or leave out one of the conditions)");
  // Each alone is possible: one stage runs as 1f1b only.
  CHECK(only_message(scenario, {"schedule!=1f1b", "pp=1"}) ==
        "error: --set pp: no legal strategy on 64 devices with pp=1 schedule!=1f1b: schedule!=1f1b leaves no value beside the other conditions "
        "(widen or leave out one of: pp, schedule)");
}

TEST_CASE("Advice names the conditions whose loss helps, and no others") {
  // 3 stages for 6 devices, dualpipe needs an even number: without pp or without the schedule it works, without the others not.
  Scenario scenario = dense(6, 16);
  scenario.profile.can.schedules = "1f1b,dualpipe";
  const auto found = messages(scenario, with({"tp=1", "pp=3", "cp=1", "mbs=1", "vpp=1", "schedule=dualpipe"}));
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "error: --set pp: no legal strategy on 6 devices with tp=1 pp=3 cp=1 mbs=1 vpp=1 schedule=dualpipe: dualpipe needs an even number of stages "
        "(widen or leave out one of: pp, schedule)");
}

TEST_CASE("A batch that nothing can run is the only thing said") {
  // 8 devices run 6 layers of 8 heads as dp 1 at least with tp 8; a batch of 3 needs dp 1 and works; on 7 devices only dp = 7 is left.
  const std::string expected = "error: global_batch_size: a global batch of 5 cannot be reached on 7 devices (nearest reachable: 7)";
  for (const auto& conditions : {std::vector<std::string>{}, {"schedule=1f1b"}, {"zero=1"}, {"recompute=off"}, {"tp=2"}}) {
    SearchSpace space;
    for (const auto& condition : conditions) space = *with_setting(space, condition, {});
    CHECK(messages(dense(7, 5), space) == std::vector<std::string>{expected});
  }
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

TEST_CASE("A stated schedule that a free search cannot have is said, not dropped") {
  Scenario scenario = dense(8, 16);
  scenario.run.strategy.schedule = Schedule::zb_v;
  CHECK(messages(scenario, {}).empty());  // nobody stated it: the resolved default
  scenario.run.origins["schedule"] = Origin{Origin::Kind::file, SourceRef{"train.yaml", 4, 3, "schedule"}};
  scenario.profile.name = "toy";
  CHECK(messages(scenario, {}) == std::vector<std::string>{"warning: train.yaml:4:3: schedule: the stated schedule zb_v is not searched: toy does not offer zb_v, "
                                                           "it offers 1f1b, interleaved (possible: 1f1b, interleaved)"});
  scenario.profile.can.schedules = "1f1b,interleaved,zb_v";
  scenario.model.layer_kind.assign(8, 0);  // two each in the 4 chunks of two stages
  CHECK(messages(scenario, {}).empty());
  CHECK(messages(scenario, with({"schedule=1f1b"})).empty());
}

TEST_CASE("Conditions that exclude each other") {
  const auto found = messages(dense(8, 16), with({"tp=4", "pp=2", "cp=2"}));
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "error: --set tp: no legal strategy on 8 devices with tp=4 pp=2 cp=2: dp * tp * pp * cp is not the number of devices "
        "(widen or leave out one of: tp, pp, cp)");
}

}  // namespace nd
