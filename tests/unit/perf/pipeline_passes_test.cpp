// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include "nd/perf.hpp"
#include "nd/schedule.hpp"
#include "perf/pipeline.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

ParallelConfig pipeline(Schedule schedule, int chunks) {
  ParallelConfig config{.dp = 2, .pp = 4, .vpp = chunks, .micro_batch_size = 1, .micro_batch_num = 8};
  config.schedule = schedule;
  return config;
}

Scenario llama() {
  auto scenario = testing::make_scenario(testing::llama_8b(), {.devices = 8, .global_batch = 16, .seq_length = 2048});
  scenario.profile.can.schedules = "gpipe, 1f1b, interleaved, zb_h1, zb_v, dualpipe, dualpipe_v, seq_1f1b";
  return scenario;
}

/// Length of the replay when messages are free, as estimate_time counts them apart.
double without_messages(const PipelinePasses& passes) {
  ReplayInput input = passes.input();
  input.hop = {};
  const ReplayResult replay = replay_schedule(passes.schedule, input);
  REQUIRE(replay.ok());
  return replay.makespan.value;
}

/// The step without messages and without what happens once per step.
double pipeline_share(const Scenario& scenario, const TimeBreakdown& time) {
  double rest = time.step.value - scenario.profile.time.step_overhead_ms * 1e-3;
  for (const TimePart part : {TimePart::dp_comm, TimePart::dp_reduce, TimePart::pp_comm, TimePart::optimizer}) rest -= time.part(part).value;
  return rest;
}

}  // namespace

TEST_CASE("Replayed schedules: the passes replay to the price of the pipeline", "[perf][passes]") {
  for (const auto& [schedule, chunks] : std::vector<std::pair<Schedule, int>>{{Schedule::zb_h1, 1},
                                                                              {Schedule::zb_v, 2},
                                                                              {Schedule::dualpipe, 1},
                                                                              {Schedule::dualpipe_v, 2}}) {
    INFO(to_text(schedule));
    const Scenario scenario = llama();
    const ParallelConfig config = pipeline(schedule, chunks);
    const PipelinePasses passes = pipeline_passes(scenario, config);
    CHECK(without_messages(passes) == Approx(passes.pipeline.value).epsilon(1e-12));
    // Without sharded parameters nothing of the passes is in the parts taken off, so the rest is the pipeline.
    CHECK(pipeline_share(scenario, estimate_time(scenario, config)) == Approx(passes.pipeline.value).epsilon(1e-9));
  }
}

TEST_CASE("Closed forms: the replay of the real stages stays within the stated bound", "[perf][passes]") {
  // docs/cost_model_time.md#pipeline: 1F1B exactly for equal stages; interleaved with a heavy last chunk within 12 %.
  for (const bool balanced : {false, true})
    for (const auto& [schedule, chunks] :
         std::vector<std::pair<Schedule, int>>{{Schedule::one_f_one_b, 1}, {Schedule::gpipe, 1}, {Schedule::interleaved, 2}}) {
      INFO(to_text(schedule) << (balanced ? ", balanced" : ""));
      Scenario scenario = llama();
      scenario.profile.time.balanced_layout = balanced;
      scenario.profile.can.uneven_layers = balanced;
      const PipelinePasses passes = pipeline_passes(scenario, pipeline(schedule, chunks));
      const double replay = without_messages(passes);
      CHECK(replay == Approx(passes.pipeline.value).epsilon(0.12));
      // Stages that were made equal leave no room for a bound.
      if (passes.balanced) CHECK(replay == Approx(passes.pipeline.value).epsilon(1e-9));
    }
}

TEST_CASE("One stage: the passes follow one another, nothing is sent", "[perf][passes]") {
  const Scenario scenario = llama();
  const ParallelConfig config{.dp = 8, .micro_batch_size = 1, .micro_batch_num = 2};
  const PipelinePasses passes = pipeline_passes(scenario, config);
  CHECK(passes.hop.empty());
  REQUIRE(passes.times.size() == 1);
  const auto& x = passes.times.front();
  const double one = (x.forward + x.backward_input + x.backward_weight + x.recompute).value;
  CHECK(passes.pipeline.value == Approx(2 * one).epsilon(1e-12));
  CHECK(without_messages(passes) == Approx(2 * one).epsilon(1e-12));
}

TEST_CASE("Messages lengthen the replay by no more than their own part and one hop per pass", "[perf][passes]") {
  const Scenario scenario = llama();
  const ParallelConfig config = pipeline(Schedule::one_f_one_b, 1);
  const PipelinePasses passes = pipeline_passes(scenario, config);
  REQUIRE(passes.hop.size() == 1);
  REQUIRE(passes.hop.front().value > 0);
  const double with = replay_schedule(passes.schedule, passes.input()).makespan.value;
  const double without = without_messages(passes);
  // Fill and drain cross p - 1 boundaries both ways.
  CHECK(with >= without + 2 * 3 * passes.hop.front().value * (1 - 1e-9));
  // Every one of the m micro-batches can wait for a message in either direction, at each boundary of a round trip.
  CHECK(with <= without + 2 * (8 + 3) * 2 * passes.hop.front().value);
}

TEST_CASE("1F1B closed form of the search equals the replay for equal stages, all shapes up to p 12 and m 40", "[perf][passes]") {
  const perf::ChunkSeconds chunk{.forward = 1.0, .backward = 2.25, .recompute = 0.5, .weight_gradient = 0.75};
  for (int p = 1; p <= 12; ++p)
    for (int m = 1; m <= 40; ++m) {
      const std::vector<perf::ChunkSeconds> chunks(static_cast<std::size_t>(p), chunk);
      const std::vector<PassTimes> times(static_cast<std::size_t>(p), PassTimes{{1.0}, {1.0}, {0.75}, {0.5}, {0.0}});
      ReplayInput input;
      input.shape = {.stages = p, .micro_batches = m};
      input.times = times;
      const double closed = perf::pipeline_seconds({Schedule::one_f_one_b, p, 1, m, chunks}).makespan;
      // Every stage works m (F + B); fill and drain add (p - 1)(F + B).
      REQUIRE(closed == Approx((m + p - 1) * 3.25).epsilon(1e-12));
      REQUIRE(replay_schedule(Schedule::one_f_one_b, input).makespan.value == Approx(closed).epsilon(1e-12));
    }
}

}  // namespace nd
