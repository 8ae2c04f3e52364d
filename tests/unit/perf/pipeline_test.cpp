// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "nd/schedule.hpp"
#include "perf/pipeline_replay.hpp"

namespace nd::perf {
namespace {

std::vector<ChunkSeconds> equal_chunks(int stages, int chunks) {
  return std::vector<ChunkSeconds>(static_cast<std::size_t>(stages * chunks), {1.0 / chunks, 2.0 / chunks});
}

PipelineWork work_of(Schedule schedule, const ScheduleShape& shape, const std::vector<ChunkSeconds>& chunks) {
  return {.schedule = schedule,
          .shape = shape,
          .chunks_per_stage = schedule_chunks(schedule, shape),
          .chunks = chunks,
          .model_copies = schedule == Schedule::dualpipe ? 2 : 1};
}

PipelineSeconds run(Schedule schedule, const ScheduleShape& shape, const std::vector<ChunkSeconds>& chunks) {
  PipelineReplay replay;
  return replay.run(work_of(schedule, shape, chunks));
}

/// Makespan by running the pass lists of the schedule.
double replayed(const PipelineWork& work) {
  std::vector<PassTimes> times;
  for (const ChunkSeconds& chunk : work.chunks) {
    const double input = chunk.backward - chunk.recompute - chunk.weight_gradient;
    times.push_back({{chunk.forward}, {input}, {chunk.weight_gradient}, {chunk.recompute}, {0.0}});
  }
  const std::vector<Seconds> hop{Seconds{work.hop}};
  const ReplayResult result = replay_schedule(work.schedule, {.shape = work.shape, .times = times, .hop = hop, .p2p_exposed = work.hop_exposed});
  REQUIRE(result.ok());
  return result.makespan.value;
}

}  // namespace

TEST_CASE("equal stages: the bubble is (p-1)/(m+p-1)", "[perf][pipeline]") {
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {1, 2, 8, 64}) {
      const auto chunks = equal_chunks(p, 1);
      for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::gpipe}) {
        const PipelineSeconds time = run(schedule, {.stages = p, .micro_batches = m}, chunks);
        CHECK(time.busy == Approx(3.0 * m));
        CHECK((time.makespan - time.busy) / time.makespan == Approx((p - 1.0) / (m + p - 1.0)).margin(1e-12));
      }
    }
  }
}

TEST_CASE("interleaving divides fill and drain: (p-1)/(vm+p-1)", "[perf][pipeline]") {
  for (const int v : {2, 3, 6}) {
    const PipelineSeconds time = run(Schedule::interleaved, {.stages = 4, .chunks = v, .micro_batches = 8}, equal_chunks(4, v));
    CHECK((time.makespan - time.busy) / time.makespan == Approx(3.0 / (v * 8 + 3)));
  }
}

TEST_CASE("1F1B with a heavy last stage: it works without a gap, the others once before and after", "[perf][pipeline]") {
  // The head makes the last stage 1.5 times as long, forward and backward alike.
  auto chunks = equal_chunks(4, 1);
  chunks.back() = {1.5, 3.0};
  for (const int m : {4, 8, 32}) {
    const PipelineSeconds time = run(Schedule::one_f_one_b, {.stages = 4, .micro_batches = m}, chunks);
    CHECK(time.busiest == 3);
    CHECK(time.makespan == Approx(4.5 * m + 9.0));  // m max + the other three stages once
  }
}

// Not m max + the other stages once, which would be up to 15 % more: stages before the slow one work ahead.
TEST_CASE("unequal stages: any schedule lasts as long as its replay, with messages or without", "[perf][pipeline]") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> seconds(0.2, 2.0);
  const std::vector<std::pair<Schedule, ScheduleShape>> shapes{
      {Schedule::gpipe, {.stages = 5, .micro_batches = 7}},
      {Schedule::one_f_one_b, {.stages = 8, .micro_batches = 24}},
      {Schedule::one_f_one_b, {.stages = 8, .micro_batches = 3}},
      {Schedule::interleaved, {.stages = 4, .chunks = 3, .micro_batches = 12}},
      {Schedule::interleaved, {.stages = 4, .chunks = 2, .micro_batches = 11}},
      {Schedule::zb_h1, {.stages = 6, .micro_batches = 18}},
      {Schedule::zb_v, {.stages = 4, .chunks = 2, .micro_batches = 12}},
      {Schedule::dualpipe, {.stages = 4, .micro_batches = 12}},
      {Schedule::dualpipe_v, {.stages = 4, .chunks = 2, .micro_batches = 12}},
      {Schedule::seq_1f1b, {.stages = 4, .micro_batches = 6, .parts = 3}}};
  PipelineReplay replay;
  for (const auto& [schedule, shape] : shapes) {
    for (int round = 0; round < 12; ++round) {
      std::vector<ChunkSeconds> chunks;
      for (int n = 0; n < shape.stages * schedule_chunks(schedule, shape); ++n) {
        const double forward = seconds(random), weight = seconds(random), again = round % 2 == 0 ? 0.0 : seconds(random);
        chunks.push_back({forward, seconds(random) + weight + again, again, weight});
      }
      PipelineWork work = work_of(schedule, shape, chunks);
      const double free_messages = replayed(work);
      CAPTURE(to_text(schedule), shape.micro_batches, round);
      CHECK(replay.run(work).total() == Approx(free_messages).epsilon(1e-12));
      CHECK(replay.run(work).messages == 0);
      work.hop = 0.1 * seconds(random);
      work.hop_exposed = round % 3 == 0;
      const PipelineSeconds time = replay.run(work);
      CHECK(time.makespan == Approx(free_messages).epsilon(1e-12));
      CHECK(time.total() == Approx(replayed(work)).epsilon(1e-12));
      CHECK(time.messages >= 0);
      CHECK(replay.at_least(work) <= time.total() * (1 + 1e-12));
      CHECK(replay.at_least(work) >= time.busy * (1 - 1e-12));
    }
  }
}

TEST_CASE("schedules that split the backward fill the bubble", "[perf][pipeline]") {
  // Forward 1, input gradient 1, weight gradient 1 on each of 4 stages.
  const std::vector<ChunkSeconds> chunks(4, {1, 2, 0, 1});
  const ScheduleShape shape{.stages = 4, .micro_batches = 8};
  const PipelineSeconds split = run(Schedule::zb_h1, shape, chunks);
  CHECK(split.busy == Approx(24.0));
  CHECK(split.makespan >= split.busy);
  // 1F1B: 3 * 3 = 9 idle; ZB-H1 a third of it: (p-1)(F + B - W) = 3 (Qi et al. 2023, table 2).
  CHECK(run(Schedule::one_f_one_b, shape, chunks).makespan == Approx(33.0));
  CHECK(split.makespan - split.busy == Approx(3.0));
}

TEST_CASE("gpipe: forward and backward are each paced by their slowest stage", "[perf][pipeline]") {
  // Stage 0 is slow forward, stage 1 slow backward: 4*2 + 1 forward, 4*3 + 1 backward.
  const std::vector<ChunkSeconds> chunks{{2.0, 1.0}, {1.0, 3.0}};
  CHECK(run(Schedule::gpipe, {.stages = 2, .micro_batches = 4}, chunks).makespan == Approx(9.0 + 13.0));
}

TEST_CASE("a layout by cost runs at 1.04 of the mean, never slower than the layout as given", "[perf][pipeline]") {
  const std::vector<ChunkSeconds> uneven{{1.0, 2.0}, {2.0, 4.0}};  // 3 and 6, mean 4.5
  PipelineReplay replay;
  PipelineWork work = work_of(Schedule::one_f_one_b, {.stages = 2, .micro_batches = 10}, uneven);
  work.balanced = true;
  const PipelineSeconds time = replay.run(work);
  CHECK(time.busiest == kNoStage);
  CHECK(time.busy == Approx(10 * 4.5 * 1.04));
  CHECK(time.makespan == Approx((10 + 1) * 4.68));  // both stages alike: m + p - 1
  CHECK(replay.at_least(work) == Approx(time.makespan));
  const auto even = equal_chunks(2, 1);
  work.chunks = even;
  CHECK(replay.run(work).makespan == Approx(33.0));
  CHECK(replay.run(work).busiest == 0);
}

}  // namespace nd::perf
