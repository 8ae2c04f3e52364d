// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "nd/schedule.hpp"
#include "perf/pipeline_replay.hpp"

namespace nd::perf {
namespace {

std::vector<ChunkSeconds> equal_chunks(int stages, int chunks) {
  return std::vector<ChunkSeconds>(static_cast<std::size_t>(stages * chunks), {1.0 / chunks, 2.0 / chunks});
}

/// Makespan by running the pass lists of the schedule.
double replayed(Schedule schedule, const ScheduleShape& shape, const std::vector<ChunkSeconds>& chunks) {
  std::vector<PassTimes> times;
  for (const ChunkSeconds& chunk : chunks) {
    times.emplace_back();
    times.back().forward = {chunk.forward};
    times.back().backward_input = {chunk.backward};
  }
  ReplayInput input;
  input.shape = shape;
  input.times = times;
  const ReplayResult result = replay_schedule(schedule, input);
  REQUIRE(result.ok());
  return result.makespan.value;
}
double one_f_one_b_makespan(const std::vector<ChunkSeconds>& stages, int micro_batches) {
  return replayed(Schedule::one_f_one_b, {.stages = static_cast<int>(stages.size()), .micro_batches = micro_batches}, stages);
}

}  // namespace

TEST_CASE("equal stages: the bubble is (p-1)/(m+p-1)", "[perf][pipeline]") {
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {1, 2, 8, 64}) {
      const auto chunks = equal_chunks(p, 1);
      for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::gpipe}) {
        const PipelineSeconds time = pipeline_seconds({schedule, p, 1, m, chunks});
        CHECK(time.busy == Approx(3.0 * m));
        CHECK((time.makespan - time.busy) / time.makespan == Approx((p - 1.0) / (m + p - 1.0)).margin(1e-12));
      }
    }
  }
}

TEST_CASE("interleaving divides fill and drain: (p-1)/(vm+p-1)", "[perf][pipeline]") {
  for (const int v : {2, 3, 6}) {
    const auto chunks = equal_chunks(4, v);
    const PipelineSeconds time = pipeline_seconds({Schedule::interleaved, 4, v, 8, chunks});
    CHECK((time.makespan - time.busy) / time.makespan == Approx(3.0 / (v * 8 + 3)));
  }
}

TEST_CASE("1F1B: the closed form equals a replay for equal stages, also with fewer micro-batches than stages", "[perf][pipeline]") {
  for (const int p : {2, 4, 8}) {
    for (const int m : {1, 2, 3, 4, 9, 32}) {
      const auto chunks = equal_chunks(p, 1);
      CHECK(pipeline_seconds({Schedule::one_f_one_b, p, 1, m, chunks}).makespan == Approx(one_f_one_b_makespan(chunks, m)));
    }
  }
}

TEST_CASE("1F1B with a heavy last stage: the closed form equals a replay", "[perf][pipeline]") {
  // The head makes the last stage 1.5 times as long, forward and backward alike.
  auto chunks = equal_chunks(4, 1);
  chunks.back() = {1.5, 3.0};
  for (const int m : {4, 8, 32}) {
    const PipelineSeconds time = pipeline_seconds({Schedule::one_f_one_b, 4, 1, m, chunks});
    CHECK(time.busiest == 3);
    CHECK(time.makespan == Approx(one_f_one_b_makespan(chunks, m)));
    CHECK(time.makespan == Approx(4.5 * m + 9.0));  // m max + the other three stages once
  }
}

TEST_CASE("1F1B with any one heavy stage: the closed form is within 15 % above a replay and never below", "[perf][pipeline]") {
  for (std::size_t heavy = 0; heavy < 4; ++heavy) {
    auto chunks = equal_chunks(4, 1);
    chunks[heavy] = {1.3, 2.6};
    for (const int m : {4, 8, 32}) {
      const double replay = one_f_one_b_makespan(chunks, m);
      const double closed = pipeline_seconds({Schedule::one_f_one_b, 4, 1, m, chunks}).makespan;
      CHECK(closed >= replay * (1 - 1e-12));
      CHECK(closed <= replay * 1.15);
    }
  }
}

TEST_CASE("interleaved: the closed form equals a replay for equal stages", "[perf][pipeline]") {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3}) {
      for (const int m : {p, 4 * p}) {
        const auto chunks = equal_chunks(p, v);
        CHECK(pipeline_seconds({Schedule::interleaved, p, v, m, chunks}).makespan ==
              Approx(replayed(Schedule::interleaved, {.stages = p, .chunks = v, .micro_batches = m}, chunks)));
      }
    }
  }
}

TEST_CASE("interleaved with a heavy last chunk: within 12 % of a replay", "[perf][pipeline]") {
  for (const int m : {4, 8, 32}) {
    auto chunks = equal_chunks(4, 2);
    chunks.back() = {0.75, 1.5};  // the head adds half a chunk to the last one
    const double closed = pipeline_seconds({Schedule::interleaved, 4, 2, m, chunks}).makespan;
    const double replay = replayed(Schedule::interleaved, {.stages = 4, .chunks = 2, .micro_batches = m}, chunks);
    CAPTURE(m, closed, replay);
    CHECK(closed >= 0.88 * replay);
    CHECK(closed <= 1.12 * replay);
  }
}

TEST_CASE("gpipe: the closed form equals a replay, also with unequal stages", "[perf][pipeline]") {
  const std::vector<ChunkSeconds> chunks{{2.0, 1.0}, {1.0, 3.0}, {1.5, 2.0}};
  for (const int m : {1, 2, 8})
    CHECK(pipeline_seconds({Schedule::gpipe, 3, 1, m, chunks}).makespan ==
          Approx(replayed(Schedule::gpipe, {.stages = 3, .micro_batches = m}, chunks)));
}

TEST_CASE("schedules that split the backward fill the bubble", "[perf][pipeline]") {
  // Forward 1, input gradient 1, weight gradient 1 on each of 4 stages.
  const std::vector<ChunkSeconds> chunks(4, {1, 2, 0, 1});
  ParallelConfig config;
  config.pp = 4;
  config.micro_batch_num = 8;
  config.schedule = Schedule::zb_h1;
  PipelineReplay replay;
  const PipelineSeconds split = replay.run({Schedule::zb_h1, 4, 1, 8, chunks}, config);
  CHECK(split.busy == Approx(24.0));
  CHECK(split.makespan >= split.busy);
  // 1F1B: 3 * 3 = 9 idle; ZB-H1 a third of it: (p-1)(F + B - W) = 3 (Qi et al. 2023, table 2).
  CHECK(pipeline_seconds({Schedule::one_f_one_b, 4, 1, 8, chunks}).makespan == Approx(33.0));
  CHECK(split.makespan - split.busy == Approx(3.0));
}

TEST_CASE("gpipe: forward and backward are each paced by their slowest stage", "[perf][pipeline]") {
  // Stage 0 is slow forward, stage 1 slow backward: 4*2 + 1 forward, 4*3 + 1 backward.
  const std::vector<ChunkSeconds> chunks{{2.0, 1.0}, {1.0, 3.0}};
  CHECK(pipeline_seconds({Schedule::gpipe, 2, 1, 4, chunks}).makespan == Approx(9.0 + 13.0));
}

TEST_CASE("a layout by cost runs at 1.04 of the mean, never slower than the layout as given", "[perf][pipeline]") {
  const std::vector<ChunkSeconds> uneven{{1.0, 2.0}, {2.0, 4.0}};  // 3 and 6, mean 4.5
  const PipelineSeconds time = balanced_pipeline_seconds({Schedule::one_f_one_b, 2, 1, 10, uneven});
  CHECK(time.busiest == kNoStage);
  CHECK(time.busy == Approx(10 * 4.5 * 1.04));
  CHECK(time.makespan == Approx(10 * 4.68 + (9 - 4.68)));
  const auto even = equal_chunks(2, 1);
  CHECK(balanced_pipeline_seconds({Schedule::one_f_one_b, 2, 1, 10, even}).makespan == Approx(33.0));
}

}  // namespace nd::perf
