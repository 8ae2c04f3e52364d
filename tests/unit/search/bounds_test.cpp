// SPDX-License-Identifier: Apache-2.0
// Bounds and shortcuts of the search against the models they stand for, on every legal strategy of small requests.
#include <algorithm>
#include <catch2/catch.hpp>

#include "search/pricer.hpp"
#include "space/groups.hpp"
#include "support/scenarios.hpp"

namespace nd::search {
namespace {

using testing::make_scenario;

/// Requests that differ in what the models branch on.
std::vector<Scenario> requests() {
  std::vector<Scenario> out;
  out.push_back(make_scenario(testing::llama_8b(), {.devices = 8, .global_batch = 16, .seq_length = 4096}));
  out.back().profile.memory.accumulates_whole_gradients = true;
  out.back().profile.can.style = DataParallelStyle::fsdp2;
  out.push_back(make_scenario(testing::small_moe(), {.devices = 12, .global_batch = 12, .seq_length = 1024}));
  out.back().profile.can.uneven_layers = true;
  out.back().profile.memory.cached_weight_gradients = true;
  out.back().profile.memory.gradients_freed_between_steps = true;
  out.push_back(make_scenario(testing::small_dense(), {.devices = 6, .global_batch = 24, .seq_length = 512}));
  out.back().profile.can.style = DataParallelStyle::mindspore;
  out.back().profile.memory.optimizer_shards_parameters = true;
  out.back().profile.can.schedules = "gpipe, 1f1b, interleaved, zb_h1, zb_v, dualpipe, dualpipe_v, seq_1f1b";
  out.back().profile.can.uneven_layers = true;
  out.back().model.tied_embeddings = true;
  for (auto& scenario : out) scenario.run.device_memory = Bytes{30 * kGiB};
  return out;
}

/// Calls check(config) for every legal strategy, all schedules included.
template <class Check>
std::int64_t for_strategies(const Scenario& scenario, Check check) {
  const space::SpaceContext context(scenario);
  SearchSpace space;
  for (const Schedule schedule : supported_schedules(scenario.profile.can))
    space.of(Dimension::schedule).values.push_back(static_cast<std::int64_t>(schedule));
  std::int64_t count = 0;
  (void)space::enumerate(context, space, [&](const ParallelConfig& config) {
    ++count;
    check(config);
    return true;
  });
  return count;
}

}  // namespace

TEST_CASE("The shortcut to a peak is the peak of the breakdown, and the bound is below it") {
  for (const auto& scenario : requests()) {
    Pricer pricer(scenario), whole(scenario);
    double closest = 0;
    const auto count = for_strategies(scenario, [&](const ParallelConfig& config) {
      const auto& memory = whole.memory(config);
      const Bytes bound = pricer.memory_bound(config);
      const auto peak = pricer.peak(config);
      if (!(peak.reserved == memory.peak().reserved) || peak.fit != memory.fit || bound > peak.reserved) {
        INFO(to_text(config) << " " << to_text(config.schedule) << " zero " << static_cast<int>(config.zero) << " " << to_text(config.recompute));
        CHECK(peak.reserved.value == Approx(memory.peak().reserved.value).epsilon(1e-12));
        CHECK(peak.fit == memory.fit);
        CHECK(bound <= peak.reserved);
      }
      closest = std::max(closest, bound / peak.reserved);
    });
    INFO(scenario.model.name << ": " << count << " strategies, bound up to " << closest << " of the peak");
    CHECK(count > 100);
    CHECK(closest > 0.3);  // a bound of nothing would pass the rest
  }
}

TEST_CASE("No strategy is faster than the bound of its group, and neighbours do not change a price") {
  for (const auto& scenario : requests()) {
    Pricer pricer(scenario);
    double closest = 0;
    std::int64_t visited = 0;
    for_strategies(scenario, [&](const ParallelConfig& config) {
      const double step = pricer.step(config).value;
      ParallelConfig head = config;
      space::CandidateGroup::choose(head, space::PipelineChoice{});
      space::CandidateGroup::choose(head, space::ShardChoice{});
      const double bound = pricer.time_bound(head);
      CHECK_FALSE(pricer.at_least(config).value > step);
      if (bound > step) {
        INFO(to_text(config) << " " << to_text(config.schedule));
        CHECK(bound <= step);
      }
      closest = std::max(closest, bound / step);
      if (visited++ % 37 == 0) CHECK(step == Approx(estimate_time(scenario, config).step.value).epsilon(1e-12));
    });
    INFO(scenario.model.name << ": bound up to " << closest << " of the step");
    CHECK(closest > 0.5);
  }
}

}  // namespace nd::search
