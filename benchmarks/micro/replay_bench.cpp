// SPDX-License-Identifier: Apache-2.0
// One pipeline step, p = 16, v = 4 (where the schedule has chunks), m = 128. Goal: interleaved under 200 microseconds.
#include <benchmark/benchmark.h>

#include <vector>

#include "layout/replay.hpp"
#include "layout/schedules/table.hpp"
#include "layout/step_length.hpp"

namespace nd {
namespace {

ScheduleShape shape_for(const layout::ScheduleRow& row) {
  for (const int chunks : {4, 2, 1}) {
    const ScheduleShape shape{16, chunks, 128, 1, 0};
    if (!layout::why_invalid(row, shape)) return shape;
  }
  return {};
}

std::vector<PassTimes> times_for(const layout::ScheduleRow& row, const ScheduleShape& shape) {
  const auto slots = static_cast<std::size_t>(shape.stages) * static_cast<std::size_t>(row.local_chunks(shape));
  return std::vector<PassTimes>(slots, PassTimes{{1e-3}, {1e-3}, {1e-3}, {0.0}, {0.0}});
}

/// range(0): place in the schedule table. The lists are kept from replay to replay.
void replay_step(benchmark::State& state) {
  const layout::ScheduleRow& row = layout::schedule_table()[static_cast<std::size_t>(state.range(0))];
  const ScheduleShape shape = shape_for(row);
  const auto times = times_for(row, shape);
  layout::Replay replay;
  for (auto _ : state) benchmark::DoNotOptimize(replay.run(row, {.shape = shape, .times = times}).makespan);
  state.SetLabel(std::string(row.name));
}
BENCHMARK(replay_step)->DenseRange(0, 7)->Unit(benchmark::kMicrosecond);

/// The same step's length alone, and its lower bound.
void step_length(benchmark::State& state) {
  const layout::ScheduleRow& row = layout::schedule_table()[static_cast<std::size_t>(state.range(0))];
  const ScheduleShape shape = shape_for(row);
  const auto times = times_for(row, shape);
  layout::StepLength length;
  for (auto _ : state) benchmark::DoNotOptimize(length.of(row, {.shape = shape, .times = times}));
  state.SetLabel(std::string(row.name));
}
BENCHMARK(step_length)->DenseRange(0, 7)->Unit(benchmark::kMicrosecond);

void step_lower_bound(benchmark::State& state) {
  const layout::ScheduleRow& row = layout::schedule_table()[static_cast<std::size_t>(state.range(0))];
  const ScheduleShape shape = shape_for(row);
  const auto times = times_for(row, shape);
  layout::StepLength length;
  for (auto _ : state) benchmark::DoNotOptimize(length.at_least(row, {.shape = shape, .times = times}));
  state.SetLabel(std::string(row.name));
}
BENCHMARK(step_lower_bound)->DenseRange(0, 7)->Unit(benchmark::kMicrosecond);

/// Making and checking the lists of a shape.
void build_lists(benchmark::State& state) {
  const layout::ScheduleRow& row = layout::schedule_row(Schedule::interleaved);
  ScheduleShape shape = shape_for(row);
  layout::PassLists lists;
  for (auto _ : state) {
    shape.group = shape.group == 0 ? 16 : 0;  // the same lists under another key, so that they are made again
    benchmark::DoNotOptimize(lists.build(row, shape));
  }
}
BENCHMARK(build_lists)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nd
