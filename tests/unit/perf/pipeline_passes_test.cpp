// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include "nd/perf.hpp"
#include "nd/schedule.hpp"
#include "perf/time_model.hpp"
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

TEST_CASE("The passes with their messages replay to the pipeline and its messages in the step", "[perf][passes]") {
  for (const bool overlapped : {false, true})
    for (const bool balanced : {false, true})
      for (const auto& [schedule, chunks] :
           std::vector<std::pair<Schedule, int>>{{Schedule::one_f_one_b, 1}, {Schedule::gpipe, 1}, {Schedule::interleaved, 2}, {Schedule::zb_v, 2}}) {
        INFO(to_text(schedule) << (balanced ? ", balanced" : "") << (overlapped ? ", overlapped" : ""));
        Scenario scenario = llama();
        scenario.profile.time.balanced_layout = balanced;
        scenario.profile.can.uneven_layers = balanced;
        scenario.profile.time.p2p_overlap = overlapped;
        const ParallelConfig config = pipeline(schedule, chunks);
        const PipelinePasses passes = pipeline_passes(scenario, config);
        CHECK(without_messages(passes) == Approx(passes.pipeline.value).epsilon(1e-12));
        const double messages = estimate_time(scenario, config).part(TimePart::pp_comm).value;
        CHECK(messages > 0);
        CHECK(replay_schedule(passes.schedule, passes.input()).makespan.value == Approx(passes.pipeline.value + messages).epsilon(1e-12));
      }
}

TEST_CASE("The lower bound of a step is no more than the step and close to it", "[perf][passes]") {
  for (const auto& [schedule, chunks] : std::vector<std::pair<Schedule, int>>{{Schedule::one_f_one_b, 1},
                                                                              {Schedule::gpipe, 1},
                                                                              {Schedule::interleaved, 2},
                                                                              {Schedule::zb_h1, 1},
                                                                              {Schedule::zb_v, 2},
                                                                              {Schedule::dualpipe, 1},
                                                                              {Schedule::dualpipe_v, 2}}) {
    INFO(to_text(schedule));
    const Scenario scenario = llama();
    perf::TimeModel model(scenario);
    const ParallelConfig config = pipeline(schedule, chunks);
    const double bound = model.at_least(config).value, exact = estimate_time(scenario, config).step.value;
    CHECK(bound <= exact);
    CHECK(bound >= 0.8 * exact);
    // What at_least has prepared serves the estimate of the same strategy, and only that.
    TimeBreakdown time;
    model.estimate(config, time);
    CHECK(time.step == estimate_time(scenario, config).step);
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

}  // namespace nd
