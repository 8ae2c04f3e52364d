// SPDX-License-Identifier: Apache-2.0
// The worked example of docs/extending.md, "A pipeline schedule".
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include "layout/schedules/emit.hpp"
#include "layout/schedules/placement.hpp"
#include "unit/layout/replay_support.hpp"

namespace nd::layout::eager_1f1b {

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 1) return "eager_1f1b runs one model chunk per stage (vpp = 1)";
  return std::nullopt;
}

/// Twice as many forwards ahead as 1F1B, so that a transfer has a pass to hide behind.
int passes_ahead(const ScheduleShape& shape, int stage) {
  return std::min(shape.micro_batches, 2 * (shape.stages - stage - 1));
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  const int m = shape.micro_batches, ahead = passes_ahead(shape, stage);
  for (int unit = 0; unit < ahead; ++unit) emit(out, PassKind::forward, 0, unit);
  for (int unit = 0; unit < m; ++unit) {
    if (ahead + unit < m) emit(out, PassKind::forward, 0, ahead + unit);
    emit(out, PassKind::backward, 0, unit);
  }
}

HeldPeak held(const ScheduleShape& shape, int stage) {
  const double kept = std::min(shape.micro_batches, passes_ahead(shape, stage) + 1);
  return {kept, 0, kept};
}

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return (shape.stages - 1) * (times.forward + times.backward());
}

constexpr ScheduleRow kRow{.name = "eager_1f1b",
                           .title = "Eager 1F1B",
                           .why_invalid = why_invalid,
                           .passes = passes,
                           .local_chunks = placement::chunks_as_stated,
                           .positions = placement::places_all_chunks,
                           .position = placement::looped,
                           .held = held,
                           .bubble = bubble};

}  // namespace nd::layout::eager_1f1b

using nd::ScheduleShape;
using nd::layout::eager_1f1b::kRow;

TEST_CASE("a toy schedule gets validity, order check, counts and bubble from its row", "[layout][schedule]") {
  nd::layout::Replay replay;
  int shapes = 0;
  nd::test::for_each_shape(kRow, [&](const ScheduleShape& shape) {
    const auto times = nd::test::equal_times(kRow, shape, {});
    const auto& result = replay.run(kRow, {.shape = shape, .times = times});
    REQUIRE(result.ok());
    ++shapes;
    for (int i = 0; i < shape.stages; ++i) {
      const auto& stage = result.stages[static_cast<std::size_t>(i)];
      REQUIRE(stage.held == kRow.held(shape, i));
      REQUIRE(stage.bubble.value == Approx(*kRow.bubble(shape, {})).margin(1e-9));
    }
  });
  CHECK(shapes == 16 * 64);
  CHECK(nd::layout::why_invalid(kRow, {4, 2, 8, 1, 0}) == "eager_1f1b runs one model chunk per stage (vpp = 1)");
  CHECK(nd::layout::why_invalid(kRow, {4, 1, 8, 2, 0}).has_value());
}

// p = 4, m = 16, F = 1, B = 2, a transfer of 0.5. 1F1B: each gradient's round trip is late in every period; two passes
// ahead per stage hide it, so that only the fill and drain of 2 (p - 1) transfers remain: 3 (m + p - 1) + 2 * 3 * 0.5
// = 60.
TEST_CASE("the toy schedule hides transfers that 1F1B waits for", "[layout][schedule]") {
  const ScheduleShape shape{4, 1, 16, 1, 0};
  const auto times = nd::test::equal_times(kRow, shape, {});
  const std::vector<nd::Seconds> hop{{0.5}};
  nd::layout::Replay replay;
  CHECK(replay.run(kRow, {.shape = shape, .times = times, .hop = hop}).makespan.value == Approx(60.0));
  CHECK(nd::replay_schedule(nd::Schedule::one_f_one_b, {.shape = shape, .times = times, .hop = hop}).makespan.value >
        64.0);
}

TEST_CASE("docs/extending.md shows this very code", "[layout][schedule]") {
  const std::string root = ND_TEST_SOURCE_DIR;
  const auto read = [](const std::string& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string page = read(root + "/docs/extending.md"),
                    test = read(root + "/tests/unit/layout/schedule_toy_test.cpp");
  const auto heading = page.find("## A pipeline schedule");
  REQUIRE(heading != std::string::npos);
  const auto begin = page.find("```cpp\n", heading), end = page.find("```", begin + 7);
  REQUIRE(end != std::string::npos);
  std::istringstream code(page.substr(begin + 7, end - begin - 7));
  int lines = 0;
  for (std::string line; std::getline(code, line); ++lines) {
    INFO(line);
    CHECK(test.find(line + "\n") != std::string::npos);
  }
  CHECK(lines > 20);
}
