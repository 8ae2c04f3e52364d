// SPDX-License-Identifier: Apache-2.0
#include "layout/step_length.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "support/allocations.hpp"
#include "unit/layout/replay_support.hpp"

namespace {

using nd::PassTimes;
using nd::ReplayInput;
using nd::Schedule;
using nd::ScheduleShape;
using nd::Seconds;
using nd::layout::schedule_row;
using nd::layout::ScheduleRow;

/// A step with random durations; `input` views it.
struct Step {
  ScheduleShape shape;
  std::vector<PassTimes> times;
  std::vector<Seconds> hop;
  std::vector<double> share;
  bool exposed = false;
  [[nodiscard]] ReplayInput input() const {
    return {.shape = shape, .times = times, .hop = hop, .p2p_exposed = exposed, .part_share = share};
  }
};

/// Stages may be all different, or equal but for the ends (embedding, head), or of two sizes: ties take other branches.
Step random_step(const ScheduleRow& row, std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::uniform_real_distribution<double> seconds(0.05, 2.0);
  Step step;
  do {
    step.shape = {pick(1, 16), pick(1, 4), pick(1, 72), row.takes_parts ? pick(1, 4) : 1, 0};
    if (row.takes_group && pick(0, 1) == 1) step.shape.group = pick(step.shape.stages, step.shape.stages + 9);
  } while (nd::layout::why_invalid(row, step.shape));
  const int slots = step.shape.stages * row.local_chunks(step.shape), kind = pick(0, 2);
  const bool recompute = pick(0, 1) == 1, joined = pick(0, 1) == 1;
  const auto chunk = [&] {
    return PassTimes{{seconds(random)}, {seconds(random)}, {seconds(random)}, {recompute ? seconds(random) : 0.0}, {joined ? seconds(random) : 0.0}};
  };
  const PassTimes usual = chunk(), other = chunk();
  for (int n = 0; n < slots; ++n) {
    const bool end = n == 0 || n == slots - 1;
    step.times.push_back(kind == 0 ? chunk() : kind == 1 ? (end ? chunk() : usual) : (pick(0, 1) == 1 ? usual : other));
  }
  const int hops = pick(0, 2);
  for (int n = 0; n < (hops == 2 ? step.shape.stages : hops); ++n) step.hop.push_back({pick(0, 3) == 0 ? seconds(random) : 0.05 * seconds(random)});
  step.exposed = pick(0, 1) == 1;
  if (step.shape.parts > 1 && pick(0, 3) == 0) {
    double sum = 0;
    for (int n = 0; n < step.shape.parts; ++n) step.share.push_back(seconds(random));
    for (const double share : step.share) sum += share;
    for (double& share : step.share) share /= sum;
  }
  return step;
}

std::string words(const ScheduleRow& row, const Step& step) {
  return std::string(row.name) + " p " + std::to_string(step.shape.stages) + " v " + std::to_string(step.shape.chunks) + " m " +
         std::to_string(step.shape.micro_batches) + " parts " + std::to_string(step.shape.parts) + " group " +
         std::to_string(step.shape.group) + (step.exposed ? " exposed" : " overlapped") + " hops " + std::to_string(step.hop.size());
}

}  // namespace

TEST_CASE("the length of a step equals the replay, and its lower bound is no more", "[layout][length]") {
  std::mt19937 random(20240917);
  nd::layout::Replay replay;
  nd::layout::StepLength length;
  for (const ScheduleRow& row : nd::layout::schedule_table())
    for (int n = 0; n < 400; ++n) {
      const Step step = random_step(row, random);
      const auto& replayed = replay.run(row, step.input());
      INFO(words(row, step));
      REQUIRE(replayed.ok());
      const double exact = replayed.makespan.value;
      REQUIRE(length.of(row, step.input()).value == Approx(exact).epsilon(1e-12));
      REQUIRE(length.at_least(row, step.input()).value <= exact * (1 + 1e-12));
    }
}

TEST_CASE("the length of a step equals the replay for every legal shape, stages unequal", "[layout][length]") {
  nd::layout::Replay replay;
  nd::layout::StepLength length;
  std::mt19937 random(3);
  for (const ScheduleRow& row : nd::layout::schedule_table()) {
    if (row.length == nullptr) continue;
    int wrong = 0, shapes = 0;
    nd::test::for_each_shape(row, [&](const ScheduleShape& shape) {
      if (shape.micro_batches % 4 == 3 && shape.stages > 8) return;  // thinned: the whole set takes minutes unoptimised
      auto times = nd::test::equal_times(row, shape, {1.0, 1.25, 0.75, 3.0});
      times.front().forward.value += 0.01 * static_cast<double>(random() % 8);  // embedding
      times.back().forward.value += 0.125 * static_cast<double>(random() % 8);  // head
      times.back().backward_input.value += 0.25 * static_cast<double>(random() % 8);
      const ReplayInput input{.shape = shape, .times = times};
      const double exact = replay.run(row, input).makespan.value;
      ++shapes;
      wrong += std::abs(length.of(row, input).value - exact) > 1e-12 * exact || length.at_least(row, input).value > exact * (1 + 1e-12);
    });
    INFO(row.name);
    CHECK(shapes > 500);
    CHECK(wrong == 0);
  }
}

// Busiest stage: m (F + B) + (p - 1)(F + B) for 1F1B, with fill and drain a chunk each when interleaved.
TEST_CASE("the lower bound is the length itself for equal stages", "[layout][length]") {
  nd::layout::StepLength length;
  for (const auto& [schedule, shape] : {std::pair{Schedule::one_f_one_b, ScheduleShape{8, 1, 32, 1, 0}},
                                        std::pair{Schedule::gpipe, ScheduleShape{8, 1, 5, 1, 0}},
                                        std::pair{Schedule::interleaved, ScheduleShape{8, 3, 32, 1, 0}},
                                        std::pair{Schedule::seq_1f1b, ScheduleShape{8, 1, 32, 4, 0}},
                                        std::pair{Schedule::zb_h1, ScheduleShape{8, 1, 32, 1, 0}}}) {
    const ScheduleRow& row = schedule_row(schedule);
    const auto times = nd::test::equal_times(row, shape, {1, 1, 1, 3});
    const ReplayInput input{.shape = shape, .times = times};
    INFO(row.name);
    CHECK(length.at_least(row, input).value == Approx(length.of(row, input).value).epsilon(1e-12));
  }
  // 1F1B with any one stage half as long again: at most the forwards that other stages wait for are missing.
  for (std::size_t slow = 0; slow < 8; ++slow) {
    const ScheduleShape shape{8, 1, 64, 1, 0};
    const ScheduleRow& row = schedule_row(Schedule::one_f_one_b);
    auto times = nd::test::equal_times(row, shape, {1, 1, 1, 3});
    times[slow] = {{1.5}, {1.5}, {1.5}, {0.0}, {0.0}};
    const ReplayInput input{.shape = shape, .times = times};
    CHECK(length.at_least(row, input).value >= 0.96 * length.of(row, input).value);
  }
}

// The orders of ZB-V and ZB-H1 are fixed ones, made for F = Bi = W. How much a planner that knows the durations could gain at most, over
// durations that occur: Bi 0.8 to 1.4 F, W 0.6 to 1 F, recomputation (1 F on Bi), a head of half a chunk, transfers of 0.05 F;
// m = 4 p. docs/cost_model_pipeline.md#zero-bubble.
TEST_CASE("zero-bubble orders stay near the lower bound for durations they were not made for", "[layout][length]") {
  nd::layout::StepLength length;
  double worst_v = 1, worst_h1 = 1, worst_v_whole = 1;  // whole: without recomputation and transfers
  for (const int p : {2, 4, 8, 16})
    for (const double input : {0.8, 1.0, 1.2, 1.4})
      for (const double weight : {0.6, 0.8, 1.0})
        for (const double again : {0.0, 1.0})
          for (const double head : {0.0, 0.5})
            for (const double hop_time : {0.0, 0.05})
              for (const Schedule schedule : {Schedule::zb_v, Schedule::zb_h1}) {
                const ScheduleRow& row = schedule_row(schedule);
                const bool v = schedule == Schedule::zb_v;
                const ScheduleShape shape{p, v ? 2 : 1, 4 * p, 1, 0};
                std::vector<PassTimes> times(static_cast<std::size_t>(p * shape.chunks), PassTimes{{1.0}, {input}, {weight}, {again}, {0.0}});
                PassTimes& last = v ? times[1] : times.back();  // the V ends where it began
                last = {{1.0 + head}, {input + head}, {weight + head}, {again}, {0.0}};
                const std::vector<Seconds> hop{{hop_time}};
                const ReplayInput step{.shape = shape, .times = times, .hop = hop};
                const double ratio = length.of(row, step).value / length.at_least(row, step).value;
                double& worst = v ? worst_v : worst_h1;
                worst = std::max(worst, ratio);
                if (v && again == 0.0 && hop_time == 0.0) worst_v_whole = std::max(worst_v_whole, ratio);
              }
  CHECK(worst_v <= 1.085);
  CHECK(worst_v_whole <= 1.035);
  CHECK(worst_h1 <= 1.08);
  CHECK(worst_v >= 1.05);  // the bound is not reached either: a stated gap, not a proof of optimality
}

// p = 2, m = 2, stage 0: F 1, B 2; stage 1: F 3, B 1; 1F1B. Stage 0: F1 0-1, F2 1-2; stage 1: F1 1-4 B1 4-5 F2 5-8 B2 8-9;
// stage 0: B1 5-7, B2 9-11.
TEST_CASE("two unequal stages by hand", "[layout][length]") {
  const std::vector<PassTimes> times{{{1.0}, {2.0}, {0.0}, {0.0}, {0.0}}, {{3.0}, {1.0}, {0.0}, {0.0}, {0.0}}};
  nd::layout::StepLength length;
  const ScheduleRow& row = schedule_row(Schedule::one_f_one_b);
  CHECK(length.of(row, {.shape = {2, 1, 2, 1, 0}, .times = times}).value == 11.0);
  CHECK(length.at_least(row, {.shape = {2, 1, 2, 1, 0}, .times = times}).value == 11.0);  // 1 + 2 (3 + 1) + 2
  // A hop of 0.5 before F1, between B1 of stage 1 and B1 of stage 0, and so on; blocked, stage 1 waits before F2 as well:
  // F1 1.5-4.5 B1 4.5-5.5, 5.5-6 F2 6-9 B2 9-10, 10-10.5 B2 10.5-12.5.
  const std::vector<Seconds> hop{{0.5}};
  CHECK(length.of(row, {.shape = {2, 1, 2, 1, 0}, .times = times, .hop = hop}).value == 12.0);
  CHECK(length.of(row, {.shape = {2, 1, 2, 1, 0}, .times = times, .hop = hop, .p2p_exposed = true}).value == 12.5);
}

TEST_CASE("a step's length allocates nothing once the memory is there", "[layout][length]") {
  nd::layout::StepLength length;
  const ScheduleShape shape{8, 2, 32, 1, 0};
  const ScheduleRow& row = schedule_row(Schedule::interleaved);
  const auto times = nd::test::equal_times(row, shape, {});
  (void)length.of(row, {.shape = shape, .times = times});
  (void)length.at_least(row, {.shape = shape, .times = times});
  const std::int64_t before = nd::test::allocations();
  (void)length.of(row, {.shape = shape, .times = times});
  (void)length.at_least(row, {.shape = shape, .times = times});
  CHECK(nd::test::allocations() == before);
}
