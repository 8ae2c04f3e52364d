// SPDX-License-Identifier: Apache-2.0
// Plans against every combination of modes, priced with the memory model itself.
#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "nd/memory.hpp"
#include "nd/perf.hpp"
#include "nd/plan.hpp"
#include "nd/potentials.hpp"
#include "nd/search.hpp"
#include "plan/planner.hpp"
#include "space/enumerate.hpp"
#include "support/scenarios.hpp"

namespace nd::plan {
namespace {

using testing::make_scenario;
using memory::MemoryModel;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One dense layer, then layers of experts.
ResolvedModel two_kinds() {
  ResolvedModel model = testing::small_moe();
  model.kinds.insert(model.kinds.begin(), testing::small_dense().kinds.front());
  std::fill(model.layer_kind.begin() + 1, model.layer_kind.end(), 1);
  model.mtp_kind = 1;
  return model;
}

/// Requests that differ in what the memory of a stage branches on.
std::vector<Scenario> requests() {
  std::vector<Scenario> out;
  const auto add = [&out](ResolvedModel model, std::int64_t seq_length) -> Scenario& {
    out.push_back(make_scenario(std::move(model), {.devices = 8, .global_batch = 16, .seq_length = seq_length}));
    out.back().profile.can.uneven_layers = true;
    return out.back();
  };
  add(testing::small_dense(), 2048);
  add(two_kinds(), 2048).profile.memory.gradients_freed_between_steps = true;
  Scenario& sharded = add(testing::small_dense(), 1024);
  sharded.profile.can.style = DataParallelStyle::fsdp2;
  sharded.profile.memory.accumulates_whole_gradients = true;
  Scenario& covered = add(two_kinds(), 1024);
  covered.model.mtp_depth = 1;
  covered.profile.memory.working_set_covers_recompute = true;
  Scenario& adapters = add(testing::small_dense(), 1024);
  adapters.profile.can.style = DataParallelStyle::fsdp2;
  adapters.run.frozen_base = true;
  adapters.run.trained_parameters = 1e6;
  adapters.profile.memory.boundary_gradients_kept = true;
  add(two_kinds(), 512).profile.memory.working_set_layers = 2;
  return out;
}

std::vector<ParallelConfig> strategies(const Scenario& scenario) {
  const space::SpaceContext context(scenario);
  SearchSpace space;
  space.of(Dimension::recompute).values = {static_cast<std::int64_t>(Recompute::per_layer)};
  std::vector<ParallelConfig> out;
  (void)space::enumerate(context, space, [&out](const ParallelConfig& config) {
    out.push_back(config);
    return true;
  });
  return out;
}

/// The layers of one kind (or the MTP blocks) of one chunk.
struct Place {
  std::size_t chunk, kind;
  std::int64_t layers;
};

/// Every way to recompute the layers of one stage.
class EveryWay {
 public:
  EveryWay(const Scenario& scenario, const ParallelConfig& config, std::size_t stage)
      : scenario_(scenario), config_(config), stage_(stage), memory_(scenario), time_(scenario) {
    config_.recompute = Recompute::off;
    time_.mode_seconds(config_, seconds_);
    chunks_ = memory_.stage_layout(config_).stages[stage];
    const std::size_t kinds = scenario.model.kinds.size();
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      chunks_[c].modes.assign(kinds + 1, {});
      for (std::size_t k = 0; k <= kinds; ++k) {
        const std::int64_t layers = k < kinds ? chunks_[c].layers_by_kind[k] : chunks_[c].mtp_blocks;
        if (layers > 0) places_.push_back({c, k, layers});
      }
    }
  }

  [[nodiscard]] double ways() const {
    double out = 1;
    for (const Place& place : places_) out *= static_cast<double>((place.layers + 1) * (place.layers + 2)) / 2;
    return out;
  }
  [[nodiscard]] double seconds(const std::vector<layout::Chunk>& chunks) const {
    double sum = 0;
    for (const Place& place : places_) {
      const auto& modes = chunks[place.chunk].modes.empty() ? layout::KindModes{} : chunks[place.chunk].modes[place.kind];
      const auto& each = seconds_[place.kind];
      sum += static_cast<double>(place.layers - modes.full - modes.selective) * each[0] + static_cast<double>(modes.selective) * each[1] +
             static_cast<double>(modes.full) * each[2];
    }
    return sum;
  }
  /// Seconds of the fastest way that fits; kNever when none does.
  double fastest() {
    best_ = kNever;
    vary(0);
    return best_;
  }

 private:
  void vary(std::size_t at) {
    if (at == places_.size()) {
      const double now = seconds(chunks_);
      if (now < best_ && fits()) best_ = now;
      return;
    }
    auto& modes = chunks_[places_[at].chunk].modes[places_[at].kind];
    for (modes.full = 0; modes.full <= places_[at].layers; ++modes.full)
      for (modes.selective = 0; modes.full + modes.selective <= places_[at].layers; ++modes.selective) vary(at + 1);
    modes = {};
  }
  bool fits() {
    memory::price_stage(memory_.parts(config_).stage(scenario_, config_, chunks_, stage_), ReadingTime::steady, price_);
    return price_.memory.reserved <= memory_.budget();
  }

  const Scenario& scenario_;
  ParallelConfig config_;
  std::size_t stage_;
  MemoryModel memory_;
  perf::TimeModel time_;
  std::vector<perf::TimeModel::ModeSeconds> seconds_;
  std::vector<layout::Chunk> chunks_;
  std::vector<Place> places_;
  memory::StagePrice price_;
  double best_ = kNever;
};

Bytes reserved(const Scenario& scenario, ParallelConfig config, Recompute mode) {
  config.recompute = mode;
  return estimate_memory(scenario, config).peak().reserved;
}

}  // namespace

TEST_CASE("A plan is the fastest of every combination of modes that fits, stage by stage") {
  std::mt19937 random(8);
  int stages = 0, mixed = 0, none = 0, several = 0;
  for (Scenario scenario : requests()) {
    const auto all = strategies(scenario);
    REQUIRE(all.size() > 20);
    for (int draw = 0; draw < 200; ++draw) {
      const ParallelConfig config = all[random() % all.size()];
      // Budgets from what nothing fits in to what everything does.
      const double most = reserved(scenario, config, Recompute::off).value, least = reserved(scenario, config, Recompute::full).value;
      scenario.run.device_memory = Bytes{least + (most - least) * std::uniform_real_distribution<>(-0.3, 1.1)(random)};
      MemoryModel memory(scenario);
      perf::TimeModel time(scenario);
      Planner planner(scenario, memory, time);
      const StrategyPlan& plan = planner.plan(config);
      MemoryBreakdown priced;
      memory.estimate(config, *plan.layout, priced);
      CHECK(priced.peak().reserved.value == Approx(plan.peak.reserved.value).epsilon(1e-12));
      bool every_stage_fits = true;
      for (std::size_t s = 0; s < priced.stages.size(); ++s) {
        EveryWay brute(scenario, config, s);
        if (brute.ways() > 4000) continue;
        INFO(scenario.model.name << " " << to_text(config) << " " << to_text(config.schedule) << " zero " << static_cast<int>(config.zero) << " stage " << s << " budget "
                                 << to_gib(scenario.run.device_memory));
        const double best = brute.fastest(), found = brute.seconds(plan.layout->stages[s]);
        const bool fits = priced.stages[s].reserved <= memory.budget();
        every_stage_fits = every_stage_fits && fits;
        ++stages;
        if (plan.layout->stages[s].size() > 1) {
          // Several chunks: what is found fits and is no faster than possible.
          ++several;
          if (fits) CHECK(found >= best * (1 - 1e-12));
          continue;
        }
        CHECK(fits == (best < kNever));
        if (!fits) {
          ++none;
          continue;
        }
        if (plan.peak.fit == Fit::no) continue;  // another stage fits in no way: every stage needs least
        CHECK(found == Approx(best).epsilon(1e-12));
        mixed += found > EveryWay(scenario, config, s).seconds(memory.stage_layout([&] { auto off = config; off.recompute = Recompute::off; return off; }()).stages[s]) * (1 + 1e-9) ? 1 : 0;
      }
      if (plan.peak.fit != Fit::no) CHECK(every_stage_fits);
    }
  }
  INFO(stages << " stages, " << mixed << " recompute something, " << none << " fit in no way, " << several << " have chunks");
  CHECK(stages > 1000);
  CHECK(mixed > 100);
  CHECK(none > 20);
}

TEST_CASE("With all the memory there is nothing is recomputed and the price is that of off; less memory never saves time") {
  for (Scenario scenario : requests()) {
    scenario.cluster.device.memory.usable = Bytes{1024 * kGiB};
    for (const ParallelConfig& config : strategies(scenario)) {
      if (config.micro_batch_size > 1 || config.zero == ZeroLevel::gradients) continue;
      double before = 0;
      const Bytes most = reserved(scenario, config, Recompute::off), least = reserved(scenario, config, Recompute::full);
      for (const double share : {2.0, 0.8, 0.6, 0.3, 0.1}) {
        scenario.run.device_memory = share > 1 ? Bytes{1024 * kGiB} : Bytes{least.value + share * (most.value - least.value)};
        const double step = estimate_time(scenario, config).step.value;
        ParallelConfig off = config;
        off.recompute = Recompute::off;
        if (share > 1) {
          CHECK(step == Approx(estimate_time(scenario, off).step.value).epsilon(1e-12));
          CHECK(estimate_memory(scenario, config).peak().reserved.value == Approx(estimate_memory(scenario, off).peak().reserved.value).epsilon(1e-12));
        }
        if (!plan_layers(scenario, config).fits) break;
        INFO(to_text(config) << " at " << share);
        // Gradients may hide behind recomputation, which is then free: the step need not grow by all of it, but never shrinks by more.
        if (config.pp == 1) CHECK(step >= before * (1 - 1e-9));
        before = step;
      }
    }
  }
}

TEST_CASE("Potentials go from the plan to full recompute, one layer a step, each the cheapest of that step") {
  std::size_t sequences = 0;
  for (Scenario scenario : requests()) {
    scenario.cluster.device.memory.usable = Bytes{1024 * kGiB};  // nothing is left out
    for (const ParallelConfig& config : strategies(scenario)) {
      if (config.pp == 1 || config.micro_batch_size > 1) continue;
      const auto steps = recompute_potentials(scenario, config);
      const std::int64_t layers = scenario.model.layers() + scenario.model.mtp_depth;
      INFO(to_text(config));
      REQUIRE(steps.size() == static_cast<std::size_t>(layers) + 1);
      CHECK(steps.front().step.value == Approx(estimate_time(scenario, config).step.value).epsilon(1e-12));
      CHECK(steps.front().changed.count == 0);
      ParallelConfig full = config;
      full.recompute = Recompute::full;
      CHECK(steps.back().step.value == Approx(estimate_time(scenario, full).step.value).epsilon(1e-12));
      CHECK(steps.back().peak.value == Approx(estimate_memory(scenario, full).peak().reserved.value).epsilon(1e-12));
      for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].full_layers == static_cast<std::int64_t>(i));  // with this much memory the plan keeps everything
        if (i > 0) CHECK(steps[i].changed.count == 1);
      }
      if (++sequences > 40) return;
    }
  }
  CHECK(sequences > 10);
}

TEST_CASE("A strategy that fits with a mixed plan only is found with per_layer and absent without") {
  Scenario scenario = requests().front();
  scenario.run.devices = scenario.cluster.devices = 2;
  ParallelConfig config;
  config.pp = 2;
  config.micro_batch_num = 16;
  // Between what full recompute and none need: only a mix keeps more than full recompute and fits.
  const Bytes off = reserved(scenario, config, Recompute::off), full = reserved(scenario, config, Recompute::full);
  REQUIRE(full < off);
  scenario.run.device_memory = Bytes{0.5 * (full.value + off.value)};
  SearchSpace space = fixed_space(config);
  space.of(Dimension::recompute).values = {0, 1, 2};
  const auto uniform = search_strategies(scenario, space, {});
  space.of(Dimension::recompute).values = {static_cast<std::int64_t>(Recompute::per_layer)};
  const auto planned = search_strategies(scenario, space, {});
  REQUIRE(planned.candidates.size() == 1);
  REQUIRE(!uniform.candidates.empty());
  const auto& best = planned.candidates.front();
  REQUIRE(best.plan);
  CHECK(best.time.step < uniform.candidates.front().time.step);
  CHECK(best.memory.peak().reserved <= scenario.run.device_memory);
  bool recomputed = false, kept = false;
  std::int64_t layers = 0;
  for (const auto& range : best.plan->layers) {
    recomputed = recomputed || range.mode != Recompute::off;
    kept = kept || range.mode == Recompute::off;
    layers += range.count;
  }
  CHECK(recomputed);
  CHECK(kept);
  CHECK(layers == scenario.model.layers());
  // Without full recompute among the modes nothing but a mix fits: the modes for the whole model are off alone.
  scenario.run.layer_modes = {true, false, true};
  space.of(Dimension::recompute).values = {0};
  CHECK(search_strategies(scenario, space, {}).candidates.empty());
}

}  // namespace nd::plan
