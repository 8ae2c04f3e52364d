// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "layout/layout.hpp"
#include "layout/schedules/table.hpp"

namespace {

using nd::Schedule;
using nd::ScheduleShape;

std::string reason(Schedule schedule, const ScheduleShape& shape) {
  return std::string(nd::why_invalid(schedule, shape).value_or(""));
}

}  // namespace

TEST_CASE("the names of the table are those of the configuration", "[layout][schedule]") {
  CHECK(nd::all_schedules().size() == 8);
  for (const auto& row : nd::layout::schedule_table()) {
    CHECK(row.name == nd::to_text(row.id));
    CHECK(nd::find_schedule(row.name) == row.id);
  }
  CHECK_FALSE(nd::find_schedule("2f2b").has_value());
}

TEST_CASE("schedules refuse what they cannot run, with a reason", "[layout][schedule]") {
  CHECK(reason(Schedule::gpipe, {4, 1, 1, 1, 0}).empty());
  CHECK(reason(Schedule::gpipe, {0, 1, 1, 1, 0}) == "stages, chunks, micro-batches and parts must be at least 1");
  CHECK(reason(Schedule::one_f_one_b, {4, 2, 8, 1, 0}) ==
        "1f1b runs one model chunk per stage (vpp = 1); with more use interleaved");
  CHECK(reason(Schedule::interleaved, {4, 1, 8, 1, 0}) ==
        "interleaved needs at least 2 model chunks per stage (vpp >= 2)");
  CHECK(reason(Schedule::interleaved, {1, 2, 8, 1, 0}) == "interleaved needs a pipeline (pp >= 2)");
  CHECK(reason(Schedule::interleaved, {4, 2, 3, 1, 0}) == "interleaved needs at least as many micro-batches as stages");
  CHECK(reason(Schedule::interleaved, {4, 2, 5, 1, 0}).empty());
  CHECK(reason(Schedule::interleaved, {4, 2, 8, 1, 3}) ==
        "the micro-batch group size must lie between the number of stages and of micro-batches");
  CHECK(reason(Schedule::one_f_one_b, {4, 1, 8, 1, 4}) ==
        "this schedule has no micro-batch group size (interleaved has)");
  CHECK(reason(Schedule::one_f_one_b, {4, 1, 8, 2, 0}) ==
        "this schedule does not split sequences into parts (seq_1f1b does)");
  CHECK(reason(Schedule::zb_h1, {4, 2, 8, 1, 0}) == "zb_h1 runs one model chunk per stage (vpp = 1)");
  CHECK(reason(Schedule::zb_v, {4, 1, 8, 1, 0}) == "zb_v needs exactly 2 model chunks per stage (vpp = 2)");
  CHECK(reason(Schedule::dualpipe, {5, 1, 12, 1, 0}) == "dualpipe needs an even number of stages");
  CHECK(reason(Schedule::dualpipe, {4, 1, 6, 1, 0}) == "dualpipe needs at least 2 micro-batches per stage");
  CHECK(reason(Schedule::dualpipe, {4, 1, 9, 1, 0}) ==
        "dualpipe needs an even number of micro-batches, half for each direction");
  CHECK(reason(Schedule::dualpipe, {4, 2, 8, 1, 0}) ==
        "dualpipe runs one model chunk per stage and direction (vpp = 1)");
  CHECK(reason(Schedule::dualpipe_v, {4, 2, 7, 1, 0}) == "dualpipe_v needs at least 2 micro-batches per stage");
  CHECK(reason(Schedule::dualpipe_v, {3, 2, 7, 1, 0}).empty());
  CHECK(reason(Schedule::seq_1f1b, {4, 2, 8, 4, 0}) == "seq_1f1b runs one model chunk per stage (vpp = 1)");
}

TEST_CASE("chunks cover the model once per copy", "[layout][schedule]") {
  const ScheduleShape plain{4, 1, 8, 1, 0}, looped{4, 3, 8, 1, 0}, folded{4, 2, 8, 1, 0};
  // looped: chunk c of stage i is part c p + i
  CHECK(nd::chunk_position(Schedule::interleaved, looped, 1, 2) == 2 * 4 + 1);
  // V: part i going down, part 2p - 1 - i coming back
  CHECK(nd::chunk_position(Schedule::zb_v, folded, 0, 1) == 7);
  CHECK(nd::chunk_position(Schedule::dualpipe_v, folded, 3, 1) == 4);
  // both ways: stage i holds part i of one copy and part p - 1 - i of the other
  CHECK(nd::chunk_position(Schedule::dualpipe, plain, 1, 1) == 2);
  for (const auto& row : nd::layout::schedule_table())
    for (const auto& shape : {plain, looped, folded}) {
      if (nd::layout::why_invalid(row, shape)) continue;
      std::multiset<int> places;
      for (int stage = 0; stage < shape.stages; ++stage)
        for (int chunk = 0; chunk < row.local_chunks(shape); ++chunk) places.insert(row.position(shape, stage, chunk));
      INFO(row.name);
      CHECK(static_cast<int>(places.size()) == row.positions(shape) * row.model_copies);
      for (int place = 0; place < row.positions(shape); ++place)
        CHECK(static_cast<int>(places.count(place)) == row.model_copies);
    }
}

TEST_CASE("chunks_in_flight asks the schedule's row", "[layout][schedule]") {
  nd::ParallelConfig config{.pp = 4, .micro_batch_num = 16};
  config.schedule = Schedule::zb_h1;  // p - i activations and i deferred weight gradients: p everywhere
  CHECK(nd::layout::chunks_in_flight(config, 0) == 4);
  CHECK(nd::layout::chunks_in_flight(config, 3) == 4);
  config.schedule = Schedule::dualpipe;  // p + 1
  CHECK(nd::layout::chunks_in_flight(config, 1) == 5);
  config.schedule = Schedule::seq_1f1b;  // (p - i - 2 + n + 1) / n with n = 4 parts: stage 0 (4 - 0 - 1 + 4) / 4
  config.seq_split = 4;
  CHECK(nd::layout::chunks_in_flight(config, 0) == 7.0 / 4);
  config.seq_split = 1;
  config.vpp = 2;
  config.schedule = Schedule::zb_v;  // 2p half-sized chunks
  CHECK(nd::layout::chunks_in_flight(config, 2) == 8);
  config.schedule = Schedule::one_f_one_b;  // cannot run with vpp 2: everything is kept
  CHECK(nd::layout::chunks_in_flight(config, 2) == 32);
}
