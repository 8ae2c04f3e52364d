// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace nd::perf {
namespace {

std::vector<ChunkSeconds> equal_chunks(int stages, int chunks) {
  return std::vector<ChunkSeconds>(static_cast<std::size_t>(stages * chunks), {1.0 / chunks, 2.0 / chunks});
}

/// Runs the passes of each stage in the order of 1F1B, each as soon as its input is there.
double one_f_one_b_makespan(const std::vector<ChunkSeconds>& stages, int micro_batches) {
  const auto p = static_cast<int>(stages.size());
  struct Pass {
    bool forward;
    int micro_batch;
  };
  std::vector<std::vector<Pass>> order(stages.size());
  for (int s = 0; s < p; ++s) {
    auto& passes = order[static_cast<std::size_t>(s)];
    const int warmup = std::min(micro_batches, p - s - 1);
    for (int i = 0; i < warmup; ++i) passes.push_back({true, i});
    for (int i = warmup; i < micro_batches; ++i) {
      passes.push_back({true, i});
      passes.push_back({false, i - warmup});
    }
    for (int i = micro_batches - warmup; i < micro_batches; ++i) passes.push_back({false, i});
  }
  const auto m = static_cast<std::size_t>(micro_batches);
  std::vector<std::vector<double>> forward_end(stages.size(), std::vector<double>(m, -1)), backward_end = forward_end;
  std::vector<std::size_t> next(stages.size(), 0);
  std::vector<double> clock(stages.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      while (next[s] < order[s].size()) {
        const Pass pass = order[s][next[s]];
        const auto i = static_cast<std::size_t>(pass.micro_batch);
        double ready = 0;
        if (pass.forward && s > 0) ready = forward_end[s - 1][i];
        if (!pass.forward) ready = s + 1 < stages.size() ? backward_end[s + 1][i] : forward_end[s][i];
        if (ready < 0) break;
        clock[s] = std::max(clock[s], ready) + (pass.forward ? stages[s].forward : stages[s].backward);
        (pass.forward ? forward_end : backward_end)[s][i] = clock[s];
        ++next[s];
        progress = true;
      }
    }
  }
  return *std::max_element(clock.begin(), clock.end());
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
