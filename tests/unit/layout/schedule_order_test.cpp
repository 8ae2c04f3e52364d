// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "unit/layout/replay_support.hpp"

namespace {

using nd::Pass;
using nd::PassKind;
using nd::Schedule;
using nd::ScheduleShape;
using nd::layout::PassLists;
using nd::layout::ScheduleRow;

std::string names(Schedule schedule, const ScheduleShape& shape, int stage) {
  std::string out;
  for (const Pass& pass : nd::stage_passes(schedule, shape, stage))
    out += (out.empty() ? "" : " ") + nd::pass_name(pass, shape);
  return out;
}

}  // namespace

TEST_CASE("pass lists of small pipelines, as drawn in their papers", "[layout][schedule]") {
  CHECK(names(Schedule::gpipe, {2, 1, 3, 1, 0}, 1) == "F1 F2 F3 B1 B2 B3");
  CHECK(names(Schedule::one_f_one_b, {3, 1, 4, 1, 0}, 0) == "F1 F2 F3 B1 F4 B2 B3 B4");
  CHECK(names(Schedule::one_f_one_b, {3, 1, 4, 1, 0}, 2) == "F1 B1 F2 B2 F3 B3 F4 B4");
  // Megatron-LM, p = v = 2, m = 4, last stage: (v - 1) p = 2 ahead.
  CHECK(names(Schedule::interleaved, {2, 2, 4, 1, 0}, 1) ==
        "F1.1 F2.1 F1.2 B1.2 F2.2 B2.2 F3.1 B1.1 F4.1 B2.1 F3.2 B3.2 F4.2 B4.2 B3.1 B4.1");
  // Five micro-batches make one group of 5 when p = 3: at least p each.
  CHECK(names(Schedule::interleaved, {3, 2, 5, 1, 0}, 2).rfind("F1.1 F2.1 F3.1 F4.1 F5.1 F1.2 B1.2", 0) == 0);
  // Seven make groups of 4 and 3.
  CHECK(names(Schedule::interleaved, {3, 2, 7, 1, 0}, 2)
            .rfind("F1.1 F2.1 F3.1 F4.1 F1.2 B1.2 F2.2 B2.2 F3.2 B3.2 F4.2 B4.2 F5.1 B1.1", 0) == 0);
  // A stated group of 4 (Megatron-LM): 4, then the rest of 3, which p does not exceed; (v - 1) 4 ahead on the last stage.
  CHECK(names(Schedule::interleaved, {3, 2, 7, 1, 4}, 2)
            .rfind("F1.1 F2.1 F3.1 F4.1 F1.2 B1.2 F2.2 B2.2 F3.2 B3.2 F4.2 B4.2 F5.1 B1.1 F6.1 B2.1 F7.1 B3.1 F5.2 B4.1", 0) == 0);
  // 8 micro-batches in groups of 6 would leave 2 < p: one group of 8.
  CHECK(names(Schedule::interleaved, {3, 2, 8, 1, 6}, 2).rfind("F1.1 F2.1 F3.1 F4.1 F5.1 F6.1 F7.1 F8.1 F1.2 B1.2", 0) == 0);
  // ZB-H1, figure 2 of Qi et al.: the last stage keeps p - 1 weight gradients for the end.
  CHECK(names(Schedule::zb_h1, {3, 1, 4, 1, 0}, 0) == "F1 F2 F3 Bi1 W1 F4 Bi2 W2 Bi3 W3 Bi4 W4");
  CHECK(names(Schedule::zb_h1, {3, 1, 4, 1, 0}, 2) == "F1 Bi1 F2 Bi2 F3 Bi3 W1 F4 Bi4 W2 W3 W4");
  CHECK(names(Schedule::seq_1f1b, {2, 1, 2, 2, 0}, 1) == "F1/1 F1/2 B1/2 F2/1 B1/1 F2/2 B2/2 B2/1");
  CHECK(nd::stage_passes(Schedule::dualpipe, {3, 1, 8, 1, 0}, 0).empty());
}

// PassLists checks that every stage runs every forward of its chunks once and its backward once after it; the replay
// reports a deadlock when stages wait for each other.
TEST_CASE("every legal shape up to p 16, v 4, m 64 is a valid order without deadlock", "[layout][schedule]") {
  for (const ScheduleRow& row : nd::layout::schedule_table()) {
    nd::layout::Replay replay;
    int shapes = 0, failed = 0;
    nd::test::for_each_shape(row, [&](const ScheduleShape& shape) {
      const auto times = nd::test::equal_times(row, shape, {});
      ++shapes;
      if (!replay.run(row, {.shape = shape, .times = times}).ok()) ++failed;
    });
    INFO(row.name);
    CHECK(shapes >= 192);  // DualPipe, the most demanding
    CHECK(failed == 0);
  }
}

TEST_CASE("passes: one forward and one backward, whole or in two halves", "[layout][schedule]") {
  for (const ScheduleRow& row : nd::layout::schedule_table()) {
    const ScheduleShape shape{4, row.id == Schedule::interleaved ? 3 : 1, 12, row.takes_parts ? 3 : 1, 0};
    const ScheduleShape folded{4, 2, 12, 1, 0};
    const ScheduleShape& used = nd::layout::why_invalid(row, shape) ? folded : shape;
    REQUIRE_FALSE(nd::layout::why_invalid(row, used));
    int forwards = 0, whole = 0, inputs = 0, weights = 0;
    for (int stage = 0; stage < used.stages; ++stage)
      for (const Pass& pass : nd::stage_passes(row.id, used, stage)) {
        forwards += pass.kind == PassKind::forward;
        whole += pass.kind == PassKind::backward;
        inputs += pass.kind == PassKind::backward_input;
        weights += pass.kind == PassKind::backward_weight;
      }
    const int expected = row.positions(used) * used.units();
    INFO(row.name);
    CHECK(forwards == expected);
    CHECK(whole + inputs == expected);
    CHECK(weights == inputs);
    CHECK((inputs > 0) == row.splits_backward);
  }
}

TEST_CASE("parts of a sequence run forward in order and backward in reverse", "[layout][schedule]") {
  const ScheduleShape shape{4, 1, 6, 3, 0};
  for (int stage = 0; stage < 4; ++stage) {
    int next_forward = 0;
    std::vector<int> next_backward(6, 2);
    for (const Pass& pass : nd::stage_passes(Schedule::seq_1f1b, shape, stage)) {
      if (pass.kind == PassKind::forward)
        CHECK(pass.unit == next_forward++);
      else
        CHECK(pass.unit % 3 == next_backward[static_cast<std::size_t>(pass.unit / 3)]--);
    }
  }
}

TEST_CASE("what a stage holds: the rows' closed forms equal the count over the list", "[layout][schedule]") {
  for (const ScheduleRow& row : nd::layout::schedule_table()) {
    PassLists lists;
    int different = 0;
    nd::test::for_each_shape(row, [&](const ScheduleShape& shape) {
      REQUIRE(lists.build(row, shape) == nd::ReplayStatus::done);
      for (int stage = 0; stage < shape.stages; ++stage) different += !(row.held(shape, stage) == lists.held(stage));
    });
    INFO(row.name);
    CHECK(different == 0);
  }
}

TEST_CASE("what a stage holds equals the published counts, p 2 to 16 and m p to 64", "[layout][schedule]") {
  PassLists lists;
  int wrong = 0, shapes = 0;
  const auto check = [&](Schedule schedule, const ScheduleShape& shape, const auto& published) {
    REQUIRE(lists.build(nd::layout::schedule_row(schedule), shape) == nd::ReplayStatus::done);
    for (int i = 0; i < shape.stages; ++i) wrong += !published(i, lists.held(i));
    ++shapes;
  };
  using Held = const nd::HeldPeak&;
  for (int p = 2; p <= 16; ++p)
    for (int m = p; m <= 64; ++m) {
      check(Schedule::gpipe, {p, 1, m, 1, 0}, [m](int, Held held) { return held.activations == m; });
      check(Schedule::one_f_one_b, {p, 1, m, 1, 0}, [p](int i, Held held) { return held.activations == p - i; });
      // Qi et al. 2023, section 2.2: (p - i) M_B + i M_W (0-based), so p in all as 1F1B's first stage. Between the input and the
      // weight half of the same micro-batch one deferred gradient more is there and one activation less.
      check(Schedule::zb_h1, {p, 1, m, 1, 0}, [p](int i, Held held) { return held == nd::HeldPeak{p - i + 0.0, i + 1.0, p + 0.0}; });
      // Korthikanti et al. 2022: 2(p - i - 1) + (v - 1) p + 1 chunks, at most all; where p does not divide m groups are larger.
      for (const int v : {2, 3, 4})
        if (m % p == 0)
          check(Schedule::interleaved, {p, v, m, 1, 0},
                [=](int i, Held held) { return held.activations == std::min(2 * (p - i - 1) + (v - 1) * p + 1, v * m); });
      // Groups of 2p: 2(p - i - 1) + (v - 1) 2p + 1.
      if (m % (2 * p) == 0)
        check(Schedule::interleaved, {p, 3, m, 1, 2 * p},
              [=](int i, Held held) { return held.activations == std::min(2 * (p - i - 1) + 4 * p + 1, 3 * m); });
      // ZB-V: p M_B with half-sized chunks.
      if (m >= 2 * p - 1) check(Schedule::zb_v, {p, 2, m, 1, 0}, [p](int, Held held) { return held.together == 2 * p; });
      // DualPipe repository: PP + 1; DualPipeV has PP/2 devices, so 2p + 1 chunks.
      if (m >= 2 * p && m % 2 == 0 && p % 2 == 0)
        check(Schedule::dualpipe, {p, 1, m, 1, 0}, [p](int, Held held) { return held.activations == p + 1; });
      if (m >= 2 * p) check(Schedule::dualpipe_v, {p, 2, m, 1, 0}, [p](int, Held held) { return held.activations == 2 * p + 1; });
      // Seq1F1B: p - i - 2 + n ahead and the one in work, each 1 / n of a micro-batch.
      check(Schedule::seq_1f1b, {p, 1, m, 4, 0}, [p](int i, Held held) { return held.activations == (p - i - 1 + 4) / 4.0; });
    }
  CHECK(wrong == 0);
  CHECK(shapes > 4 * 840);  // sum over p of 65 - p, four schedules everywhere
}

TEST_CASE("the instant that holds most bytes weighs chunks by their size", "[layout][schedule]") {
  // p = 2, v = 2, m = 4, last stage: F1.1 F2.1 F1.2 B1.2 F2.2 B2.2 F3.1 B1.1 ... Chunk 1 alone counts 3 at F3.1 (1, 2,
  // 3).
  const auto passes = nd::stage_passes(Schedule::interleaved, {2, 2, 4, 1, 0}, 1);
  std::vector<nd::layout::ChunkHeld> held(2);
  const std::vector<nd::layout::ChunkBytes> first{{10, 0}, {0, 0}}, second{{1, 0}, {100, 0}};
  CHECK(nd::layout::largest_held(passes, 1, first, held) == 30);
  CHECK(held[0].activations == 3);
  CHECK(held[1].activations == 0);
  // Chunk 2 heavy: one of it with two of chunk 1 (F1.2 or F2.2).
  CHECK(nd::layout::largest_held(passes, 1, second, held) == 102);
  CHECK(held[0].activations == 2);
  CHECK(held[1].activations == 1);
  // ZB-H1, p = 3, m = 4, last stage: F1 Bi1 F2 Bi2 F3 Bi3 W1 F4 Bi4 ...: deferred inputs peak at 3.
  const auto zb = nd::stage_passes(Schedule::zb_h1, {3, 1, 4, 1, 0}, 2);
  std::vector<nd::layout::ChunkHeld> one(1);
  CHECK(nd::layout::largest_held(zb, 1, std::vector<nd::layout::ChunkBytes>{{10, 4}}, one) == 10 + 2 * 4);
  CHECK(nd::layout::largest_held(zb, 1, std::vector<nd::layout::ChunkBytes>{{10, 20}}, one) == 3 * 20);
}

TEST_CASE("broken lists are reported, not run", "[layout][schedule]") {
  ScheduleRow row = nd::layout::schedule_row(Schedule::one_f_one_b);
  nd::layout::Replay replay;
  const ScheduleShape shape{2, 1, 2, 1, 0};
  const auto times = nd::test::equal_times(row, shape, {});
  const auto run = [&](void (*passes)(const ScheduleShape&, int, nd::layout::PassList&)) {
    row.passes = passes;
    nd::layout::Replay fresh;
    return fresh.run(row, {.shape = shape, .times = times});
  };
  auto result = run([](const ScheduleShape&, int, nd::layout::PassList& out) {
    out.push_back({0, 0, PassKind::backward, false});
  });
  CHECK(result.status == nd::ReplayStatus::invalid_order);
  CHECK(result.problem == "B1 on stage 0 is out of order or doubled");
  result = run([](const ScheduleShape&, int, nd::layout::PassList& out) {
    out.push_back({0, 0, PassKind::forward, false});
  });
  CHECK(result.problem == "a backward is missing on stage 0");
  result = run([](const ScheduleShape&, int, nd::layout::PassList& out) {
    out.push_back({0, 0, PassKind::forward, false});
    out.push_back({0, 0, PassKind::backward, false});
  });
  CHECK(result.problem == "some micro-batch does not run through the whole model");
  result = run([](const ScheduleShape&, int, nd::layout::PassList& out) {
    out.push_back({7, 0, PassKind::forward, false});
  });
  CHECK(result.problem == "a pass of stage 0 names no micro-batch or chunk");
  // Stage 0 wants B1 before F2, stage 1 wants F2 before B1: both wait.
  result = run([](const ScheduleShape&, int stage, nd::layout::PassList& out) {
    const Pass f1{0, 0, PassKind::forward, false}, f2{1, 0, PassKind::forward, false};
    const Pass b1{0, 0, PassKind::backward, false}, b2{1, 0, PassKind::backward, false};
    const std::vector<Pass> order = stage == 0 ? std::vector<Pass>{f1, b1, f2, b2} : std::vector<Pass>{f1, f2, b1, b2};
    out.insert(out.end(), order.begin(), order.end());
  });
  CHECK(result.status == nd::ReplayStatus::deadlock);
  CHECK(result.problem == "stage 0 waits for ever at B1");
}
