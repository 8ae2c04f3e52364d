// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "nd/search_space.hpp"
#include "space/enumerate.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {
const SourceRef kFlag{{}, 0, 0, "--set"};
}

TEST_CASE("Dimensions are found by acronym, alias and name, in any case") {
  CHECK(*parse_dimension("TP", kFlag) == Dimension::tp);
  CHECK(*parse_dimension("mp", kFlag) == Dimension::tp);
  CHECK(*parse_dimension("Sched", kFlag) == Dimension::schedule);
  CHECK(*parse_dimension("micro-batch-size", kFlag) == Dimension::micro_batch_size);
  const auto unknown = parse_dimension("MBSS", kFlag);
  REQUIRE_FALSE(unknown);
  CHECK(to_text(unknown.error().diagnostics.front()) == "error: --set: unknown dimension 'MBSS' (did you mean 'MBS'?)");
}

TEST_CASE("Every dimension reads back what it writes") {
  for (const auto& info : dimension_list()) {
    CHECK(*parse_dimension(info.acronym, kFlag) == info.id);
    for (const std::int64_t value : {1, 2}) {
      if (info.id == Dimension::sequence_parallel && value == 2) continue;
      CHECK(*parse_value(info.id, value_text(info.id, value), kFlag) == value);
    }
  }
}

TEST_CASE("Conditions on dimensions") {
  SearchSpace space;
  const auto add = [&space](std::string_view text) {
    auto next = with_setting(space, text, kFlag);
    REQUIRE(next);
    space = *next;
  };
  add("tp=2,4,8,4");
  add(" pp <= 8 ");
  add("pp>=2");
  add("cp!=4");
  add("recompute=off,full");
  add("sp=on");
  CHECK(space.of(Dimension::tp).values == std::vector<std::int64_t>{2, 4, 8});
  CHECK(space.of(Dimension::pp).admits(8));
  CHECK_FALSE(space.of(Dimension::pp).admits(9));
  CHECK_FALSE(space.of(Dimension::pp).admits(1));
  CHECK_FALSE(space.of(Dimension::cp).admits(4));
  CHECK(to_text(space) == "tp=2,4,8 pp>=2 pp<=8 cp!=4 sp=on recompute=off,full");
  add("tp=auto");
  CHECK(space.of(Dimension::tp).automatic());
}

TEST_CASE("Conditions that cannot be read are refused") {
  const auto message = [](std::string_view text) {
    const auto result = with_setting({}, text, kFlag);
    REQUIRE_FALSE(result);
    return to_text(result.error().diagnostics.front());
  };
  CHECK(message("tp") == "error: --set: 'tp' is no condition on a dimension (write tp=2,4 or pp<=8 or cp!=16)");
  CHECK(message("tp=two") == "error: --set: 'two' is no whole number (TP is a degree, e.g. tp=2,4)");
  CHECK(message("tp=0") == "error: --set: TP must be 1 .. 2147483647, got 0");
  CHECK(message("zero=4") == "error: --set: ZERO must be 0 .. 3, got 4");
  CHECK(message("tp=99999999999999999999") == "error: --set: TP must be 1 .. 2147483647, got 99999999999999999999");
  CHECK(message("schedule>=1f1b") == "error: --set: the values of SCHED have no order (name them: schedule=A,B, or !=A for all but one)");
  CHECK(message("recompute=ful") == "error: --set: 'ful' is no value of RECOMPUTE (did you mean 'full'?)");
  CHECK(message("pp<=2,4") == "error: --set: a bound takes one value, got '2,4'");
  const auto two = with_setting({}, "tp=0,x", kFlag);
  REQUIRE_FALSE(two);
  CHECK(two.error().diagnostics.size() == 2);
}

TEST_CASE("Dimensions off the list keep what the source states") {
  RunSpec stated;
  stated.tp = 4;
  stated.recompute = Recompute::full;
  ParallelConfig fallback;
  fallback.pp = 1;
  const auto space = pin_dimensions(stated, fallback, {Dimension::pp, Dimension::optimizer_shard});
  CHECK(space.of(Dimension::tp).values == std::vector<std::int64_t>{4});
  CHECK(space.of(Dimension::tp).pinned);
  CHECK(space.of(Dimension::recompute).values == std::vector<std::int64_t>{2});
  CHECK(space.of(Dimension::cp).values == std::vector<std::int64_t>{1});
  CHECK(space.of(Dimension::pp).automatic());
  CHECK(space.of(Dimension::zero).automatic());             // comes along with OP
  CHECK(space.of(Dimension::dp).automatic());               // follows from the others
  CHECK(space.of(Dimension::micro_batch_num).automatic());
}

TEST_CASE("A pinned value stays where it can and gives way where it cannot") {
  auto scenario = testing::make_scenario(testing::small_dense(), {.devices = 8, .global_batch = 16, .seq_length = 64});
  scenario.profile.can.schedules = "1f1b, interleaved, zb_h1";
  RunSpec stated;
  stated.schedule = Schedule::zb_h1;
  stated.sequence_parallel = true;
  const auto space = pin_dimensions(stated, {}, {Dimension::tp, Dimension::pp, Dimension::vpp});
  bool zero_bubble = false, interleaved = false, with_sp = false, without_tp = false;
  space::enumerate(space::SpaceContext(scenario), space, [&](const ParallelConfig& c) {
    zero_bubble = zero_bubble || c.schedule == Schedule::zb_h1;
    interleaved = interleaved || c.schedule == Schedule::interleaved;
    with_sp = with_sp || c.sequence_parallel;
    without_tp = without_tp || c.tp == 1;
    CHECK(c.sequence_parallel == (c.tp > 1));
    // One stage has no schedule: it is called by the plain one.
    CHECK(c.schedule == (c.pp == 1 ? Schedule::one_f_one_b : c.vpp == 1 ? Schedule::zb_h1 : Schedule::interleaved));
    return true;
  });
  CHECK(zero_bubble);
  CHECK(interleaved);
  CHECK(with_sp);
  CHECK(without_tp);
}

TEST_CASE("One stage runs by one schedule, whichever are asked for") {
  auto scenario = testing::make_scenario(testing::small_dense(), {.devices = 8, .global_batch = 16, .seq_length = 64});
  scenario.profile.can.schedules = "gpipe, 1f1b, interleaved, zb_h1, dualpipe";
  SearchSpace space;
  space.of(Dimension::schedule).values = {static_cast<std::int64_t>(Schedule::gpipe), static_cast<std::int64_t>(Schedule::zb_h1)};
  int single = 0, pipelines = 0;
  space::enumerate(space::SpaceContext(scenario), space, [&](const ParallelConfig& c) {
    if (c.pp == 1) {
      ++single;
      CHECK(c.schedule == Schedule::one_f_one_b);
    } else {
      ++pipelines;
      CHECK((c.schedule == Schedule::gpipe || c.schedule == Schedule::zb_h1));
    }
    return true;
  });
  CHECK(single > 0);
  CHECK(pipelines > 0);
}

TEST_CASE("The run's micro-batch group goes where it can, elsewhere groups are pp") {
  auto scenario = testing::make_scenario(testing::small_dense(), {.devices = 8, .global_batch = 32, .seq_length = 64});
  scenario.run.strategy.micro_batch_group = 4;
  int stated = 0, usual = 0;
  space::enumerate(space::SpaceContext(scenario), {}, [&](const ParallelConfig& c) {
    const bool possible = c.schedule == Schedule::interleaved && c.pp < 4 && c.micro_batch_num >= 4;
    CHECK(c.micro_batch_group == (possible ? 4 : 0));
    (possible ? stated : usual) += 1;
    return true;
  });
  CHECK(stated > 0);
  CHECK(usual > 0);
}

}  // namespace nd
