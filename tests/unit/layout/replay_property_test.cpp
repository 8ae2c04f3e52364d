// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "support/allocations.hpp"
#include "unit/layout/replay_support.hpp"

namespace {

using nd::PassKind;
using nd::PassTimes;
using nd::ReplayInput;
using nd::Schedule;
using nd::ScheduleShape;
using nd::Seconds;
using nd::layout::schedule_row;
using nd::layout::ScheduleRow;

struct RandomStep {
  ScheduleShape shape;
  std::vector<PassTimes> times;
  std::vector<Seconds> hop;
};

RandomStep random_step(const ScheduleRow& row, std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::uniform_real_distribution<double> seconds(0.1, 2.0);
  RandomStep out;
  do {
    out.shape = {pick(1, 8), pick(1, 4), pick(1, 24), row.takes_parts ? pick(1, 4) : 1, 0};
  } while (nd::layout::why_invalid(row, out.shape));
  const int slots = out.shape.stages * row.local_chunks(out.shape);
  for (int n = 0; n < slots; ++n)
    out.times.push_back(
        {{seconds(random)}, {seconds(random)}, {seconds(random)}, {pick(0, 1) * seconds(random)}, {0.0}});
  for (int n = 0; n < out.shape.stages; ++n) out.hop.push_back({0.1 * seconds(random)});
  return out;
}

double backward(const PassTimes& t) { return (t.recompute + t.backward_input).value; }

/// Work of one stage and of the longest chain of dependencies, from the definitions.
double stage_work(const ScheduleRow& row, const RandomStep& step, int stage) {
  const int chunks = row.local_chunks(step.shape);
  double sum = 0;
  for (int c = 0; c < chunks; ++c) {
    const PassTimes& t = step.times[static_cast<std::size_t>(stage * chunks + c)];
    sum += (t.forward.value + backward(t) + t.backward_weight.value) * step.shape.micro_batches / row.model_copies;
  }
  return sum;
}
/// A part of a micro-batch down the model and its gradient back up (the weight half may come after everything).
double chain(const ScheduleRow& row, const RandomStep& step) {
  const int chunks = row.local_chunks(step.shape);
  double longest = 0;
  for (int copy = 0; copy < row.model_copies; ++copy) {
    double sum = 0;
    for (int stage = 0; stage < step.shape.stages; ++stage)
      for (int c = 0; c < chunks; ++c) {
        if (row.model_copies > 1 && c != copy) continue;
        const PassTimes& t = step.times[static_cast<std::size_t>(stage * chunks + c)];
        sum += t.forward.value + backward(t);
      }
    longest = std::max(longest, sum / step.shape.parts);
  }
  return longest;
}

}  // namespace

TEST_CASE("random durations: no step is shorter than its busiest stage or its longest chain", "[layout][replay]") {
  std::mt19937 random(20240501);
  nd::layout::Replay replay;
  for (const ScheduleRow& row : nd::layout::schedule_table())
    for (int n = 0; n < 60; ++n) {
      const RandomStep step = random_step(row, random);
      const bool exposed = n % 2 == 1;
      const auto& result =
          replay.run(row, {.shape = step.shape, .times = step.times, .hop = step.hop, .p2p_exposed = exposed});
      INFO(row.name << " p " << step.shape.stages << " v " << step.shape.chunks << " m " << step.shape.micro_batches);
      REQUIRE(result.ok());
      CHECK(result.makespan.value >= chain(row, step) - 1e-9);
      for (int stage = 0; stage < step.shape.stages; ++stage) {
        const auto& s = result.stages[static_cast<std::size_t>(stage)];
        CHECK(s.busy.value == Approx(stage_work(row, step, stage)).epsilon(1e-12));
        CHECK(s.bubble.value >= -1e-9);
        CHECK((s.busy + s.p2p + s.bubble).value == Approx(result.makespan.value).epsilon(1e-12));
        CHECK((s.warm_up.length + s.steady.length + s.cool_down.length).value ==
              Approx(result.makespan.value).epsilon(1e-12));
        CHECK((s.warm_up.idle + s.steady.idle + s.cool_down.idle).value == Approx(s.bubble.value).margin(1e-9));
      }
    }
}

TEST_CASE("timeline: stages run one pass at a time and wait for their inputs", "[layout][replay]") {
  std::mt19937 random(7);
  nd::layout::Replay replay;
  for (const ScheduleRow& row : nd::layout::schedule_table())
    for (int n = 0; n < 20; ++n) {
      const RandomStep step = random_step(row, random);
      const auto& result =
          replay.run(row, {.shape = step.shape, .times = step.times, .hop = step.hop, .timeline = true});
      REQUIRE(result.ok());
      const int places = row.positions(step.shape), units = step.shape.units();
      std::vector<double> forward(static_cast<std::size_t>(places * units), -1), gradient = forward;
      const auto at = [&](int place, int unit) { return static_cast<std::size_t>(place * units + unit); };
      // An overlapped pair gives both outputs at its end.
      for (std::size_t k = 0; k < result.timeline.size(); ++k) {
        const auto& timed = result.timeline[k];
        const double done = timed.pass.joined ? result.timeline[k + 1].end.value : timed.end.value;
        const int place = row.position(step.shape, timed.stage, timed.pass.chunk);
        if (timed.pass.kind == PassKind::forward) forward[at(place, timed.pass.unit)] = done;
        if (timed.pass.kind == PassKind::backward || timed.pass.kind == PassKind::backward_input)
          gradient[at(place, timed.pass.unit)] = done;
      }
      for (std::size_t k = 0; k < result.timeline.size(); ++k) {
        const auto& timed = result.timeline[k];
        if (k > 0 && result.timeline[k - 1].stage == timed.stage)
          REQUIRE(timed.start.value >= result.timeline[k - 1].end.value - 1e-12);
        const int place = row.position(step.shape, timed.stage, timed.pass.chunk);
        double needed = 0;
        if (timed.pass.kind == PassKind::forward && place > 0) needed = forward[at(place - 1, timed.pass.unit)];
        if (timed.pass.kind == PassKind::backward || timed.pass.kind == PassKind::backward_input)
          needed = place + 1 < places ? gradient[at(place + 1, timed.pass.unit)] : forward[at(place, timed.pass.unit)];
        if (timed.pass.kind == PassKind::backward_weight) needed = gradient[at(place, timed.pass.unit)];
        REQUIRE(needed >= 0);
        REQUIRE(timed.start.value >= needed - 1e-12);
      }
    }
}

TEST_CASE("transfers: overlapped ones delay, exposed ones block the receiver", "[layout][replay]") {
  // p = 2, m = 1, F = 1, B = 2, hop 0.5: F 0..1, transfer, F 1.5..2.5, B 2.5..4.5, transfer, B 5..7.
  const ScheduleShape shape{2, 1, 1, 1, 0};
  const std::vector<PassTimes> times(2, PassTimes{{1.0}, {1.0}, {1.0}, {0.0}, {0.0}});
  const std::vector<Seconds> hop{{0.5}};
  ReplayInput input{.shape = shape, .times = times, .hop = hop};
  auto result = nd::replay_schedule(Schedule::one_f_one_b, input);
  CHECK(result.makespan.value == 7.0);
  CHECK(result.stages[0].p2p.value == 0.0);
  CHECK(result.stages[0].bubble.value == 4.0);
  input.p2p_exposed = true;
  result = nd::replay_schedule(Schedule::one_f_one_b, input);
  CHECK(result.makespan.value == 7.0);
  CHECK(result.stages[0].p2p.value == 0.5);
  CHECK(result.stages[0].bubble.value == 3.5);

  // Many micro-batches, F = B = 1 (whole backward), hop 0.25, p = 2. Overlapped: stage 1 starts at 1.25 and is never
  // late again (it holds its input a pass ahead), ends at 1.25 + 2 m, the gradient comes back after 0.25 + 1: 2 m
  // + 2.5. Exposed: stage 1 pays 0.25 before each of its m forwards: 1 + 2.25 m + 1.25.
  const int m = 16;
  const std::vector<PassTimes> equal(2, PassTimes{{1.0}, {0.5}, {0.5}, {0.0}, {0.0}});
  const std::vector<Seconds> quarter{{0.25}};
  input = {.shape = {2, 1, m, 1, 0}, .times = equal, .hop = quarter};
  CHECK(nd::replay_schedule(Schedule::gpipe, input).makespan.value == Approx(2 * m + 2 + 2 * 0.25).epsilon(1e-12));
  input.p2p_exposed = true;
  result = nd::replay_schedule(Schedule::gpipe, input);
  CHECK(result.stages[1].p2p.value == Approx(0.25 * m));
  CHECK(result.stages[0].p2p.value == Approx(0.25 * m));
}

TEST_CASE("hops belong to stage boundaries; the chunk loop uses the last", "[layout][replay]") {
  // p = 2, v = 2, m = 2 all chunk times 0 except one: the chain crosses 0-1, 1-0, 0-1 forward and back.
  const std::vector<PassTimes> times(4, PassTimes{});
  const std::vector<Seconds> hop{{1.0}, {10.0}};
  // forward 1 + 10 + 1, backward: 1 (stage 1 to 0 ...) each gradient takes the link of the stage it comes from: to the
  // next stage round the ring, 0 -> 1 link 0, 1 -> 0 link 1: 10 + 1 + 10.
  const auto result =
      nd::replay_schedule(Schedule::interleaved, {.shape = {2, 2, 2, 1, 0}, .times = times, .hop = hop});
  CHECK(result.makespan.value == 12.0 + 21.0);
  // p = 3, V: down over links 0 and 1, turn on the spot, up over the same links; back the same way.
  const std::vector<PassTimes> folded(6, PassTimes{});
  const std::vector<Seconds> links{{1.0}, {10.0}, {100.0}};
  CHECK(nd::replay_schedule(Schedule::zb_v, {.shape = {3, 2, 1, 1, 0}, .times = folded, .hop = links}).makespan.value ==
        2 * 22.0);
}

TEST_CASE("recompute is part of the backward", "[layout][replay]") {
  const ScheduleShape shape{2, 1, 4, 1, 0};
  const std::vector<PassTimes> times(2, PassTimes{{1.0}, {1.0}, {1.0}, {0.5}, {0.0}});
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::zb_h1}) {
    const auto result = nd::replay_schedule(schedule, {.shape = shape, .times = times, .timeline = true});
    CHECK(result.stages[0].busy.value == 4 * 3.5);
    CHECK(result.stages[0].recompute.value == 4 * 0.5);
  }
  // 1F1B: (m + p - 1)(F + R + B)
  CHECK(nd::replay_schedule(Schedule::one_f_one_b, {.shape = shape, .times = times}).makespan.value == Approx(5 * 3.5));
}

TEST_CASE("one slow stage sets the pace", "[layout][replay]") {
  // 1F1B, p = 4, F = 1, B = 2, stage 2 twice as slow: it works 6 m. It waits 2 for the first forwards of stages 0 and
  // 1, then runs F1 2-4, F2 4-6 while stage 3 runs F1 4-5, B1 5-7: waits 1; after its last backward stages 1 and 0 need
  // 2 each.
  const ScheduleShape shape{4, 1, 12, 1, 0};
  std::vector<PassTimes> times(4, PassTimes{{1.0}, {1.0}, {1.0}, {0.0}, {0.0}});
  times[2] = {{2.0}, {2.0}, {2.0}, {0.0}, {0.0}};
  const auto result = nd::replay_schedule(Schedule::one_f_one_b, {.shape = shape, .times = times});
  CHECK(result.makespan.value == 6.0 * 12 + 7.0);
  CHECK(result.stages[2].bubble.value == 7.0);
}

TEST_CASE("phases of GPipe and 1F1B", "[layout][replay]") {
  // p = 2, m = 3, F = 1, B = 2. GPipe, stage 0: F 0-3, waits for the first gradient until 1 + 3 + 2 = 6, B to 12.
  const ScheduleShape shape{2, 1, 3, 1, 0};
  const std::vector<PassTimes> times(2, PassTimes{{1.0}, {1.0}, {1.0}, {0.0}, {0.0}});
  auto stage = nd::replay_schedule(Schedule::gpipe, {.shape = shape, .times = times}).stages[0];
  CHECK(stage.warm_up.length.value == 6.0);
  CHECK(stage.warm_up.idle.value == 3.0);
  CHECK(stage.steady.length.value == 0.0);
  CHECK(stage.cool_down.length.value == 6.0);
  // 1F1B, stage 0: F1 F2 0-2, gradient 1 at 4, B1 4-6 F3 6-7, gradient 2 at 7, B2 7-9, gradient 3: stage 1 has F3 7..
  // after 7 (F3 arrives at 7), 8, B 10, so B3 10-12.
  stage = nd::replay_schedule(Schedule::one_f_one_b, {.shape = shape, .times = times}).stages[0];
  CHECK(stage.warm_up.length.value == 4.0);
  CHECK(stage.steady.length.value == 3.0);
  CHECK(stage.steady.idle.value == 0.0);
  CHECK(stage.cool_down.length.value == 5.0);
  CHECK(stage.cool_down.idle.value == 1.0);
}

TEST_CASE("uneven parts of a sequence keep their total", "[layout][replay]") {
  const ScheduleShape shape{2, 1, 4, 2, 0};
  const std::vector<PassTimes> times(2, PassTimes{{1.0}, {1.0}, {1.0}, {0.0}, {0.0}});
  const std::vector<double> share{0.3, 0.7};
  const auto result = nd::replay_schedule(Schedule::seq_1f1b, {.shape = shape, .times = times, .part_share = share});
  REQUIRE(result.ok());
  CHECK(result.stages[0].busy.value == Approx(12.0).epsilon(1e-12));
  CHECK(result.makespan.value > 13.5);  // even parts: 4 * 3 + 3 / 2
}

TEST_CASE("wrong input is told apart", "[layout][replay]") {
  const std::vector<PassTimes> times(2, PassTimes{{1.0}, {1.0}, {1.0}, {0.0}, {0.0}});
  auto result = nd::replay_schedule(Schedule::interleaved, {.shape = {2, 1, 4, 1, 0}, .times = times});
  CHECK(result.status == nd::ReplayStatus::invalid_shape);
  CHECK(result.problem == "interleaved needs at least 2 model chunks per stage (vpp >= 2)");
  result = nd::replay_schedule(Schedule::one_f_one_b, {.shape = {3, 1, 4, 1, 0}, .times = times});
  CHECK(result.status == nd::ReplayStatus::invalid_input);
  CHECK(result.problem == "one set of times per stage and chunk is needed");
  auto negative = times;
  negative[1].forward = {-1.0};
  CHECK(nd::replay_schedule(Schedule::one_f_one_b, {.shape = {2, 1, 4, 1, 0}, .times = negative}).problem ==
        "a time is negative or not a number");
  negative[1].forward = {std::numeric_limits<double>::quiet_NaN()};
  CHECK_FALSE(nd::replay_schedule(Schedule::one_f_one_b, {.shape = {2, 1, 4, 1, 0}, .times = negative}).ok());
  const std::vector<Seconds> hops(3);
  CHECK(nd::replay_schedule(Schedule::one_f_one_b, {.shape = {2, 1, 4, 1, 0}, .times = times, .hop = hops}).problem ==
        "transfer times: none, one, or one per stage");
}

TEST_CASE("a used workspace allocates nothing", "[layout][replay]") {
  nd::layout::Replay replay;
  for (const ScheduleRow& row : nd::layout::schedule_table()) {
    const ScheduleShape plain{8, 1, 32, 1, 0}, looped{8, 2, 32, 1, 0}, small{4, 2, 16, 1, 0}, smallest{4, 1, 16, 1, 0};
    const bool one_chunk = !nd::layout::why_invalid(row, plain);
    const ScheduleShape shape = one_chunk ? plain : looped, other = one_chunk ? smallest : small;
    const auto times = nd::test::equal_times(row, shape, {}), fewer = nd::test::equal_times(row, other, {});
    replay.run(row, {.shape = shape, .times = times});
    const std::int64_t before = nd::test::allocations();
    const auto& again = replay.run(row, {.shape = shape, .times = times});
    const auto& changed = replay.run(row, {.shape = other, .times = fewer});
    const std::int64_t after = nd::test::allocations();
    INFO(row.name);
    CHECK(again.ok());
    CHECK(changed.ok());
    CHECK(after == before);
  }
}
