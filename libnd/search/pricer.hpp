// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "memory/memory_model.hpp"
#include "nd/scenario.hpp"
#include "perf/time_model.hpp"
#include "plan/planner.hpp"

namespace nd::search {

/// Memory and time of one strategy at a time, with the factors that strategies share kept between calls. A strategy in which
/// every layer has its own recompute mode is priced with its plan.
/// Thread-compatible: one per worker. The scenario must outlive it.
class Pricer {
 public:
  explicit Pricer(const Scenario& scenario) : memory_(scenario), time_(scenario), planner_(scenario, memory_, time_) {}
  Pricer(const Pricer&) = delete;
  Pricer& operator=(const Pricer&) = delete;

  /// Valid until the next call.
  const MemoryBreakdown& memory(const ParallelConfig& config) {
    if (planned(config)) memory_.estimate(config, layout(config), memory_scratch_);
    else memory_.estimate(config, memory_scratch_);
    return memory_scratch_;
  }
  /// Valid until the next call.
  const TimeBreakdown& time(const ParallelConfig& config) {
    if (!planned(config)) time_.estimate(config, time_scratch_);
    else if (planner_.plan(config).keeps_everything) time_.estimate(kept(config), time_scratch_);
    else if (bounded_ == config) time_.estimate_again(time_scratch_);
    else time_.estimate(config, layout(config), time_scratch_);
    bounded_.reset();
    return time_scratch_;
  }
  [[nodiscard]] Seconds step(const ParallelConfig& config) { return time(config).step; }
  /// What decides whether the strategy fits, without the breakdown.
  [[nodiscard]] memory::PeakMemory peak(const ParallelConfig& config) { return planned(config) ? planner_.plan(config).peak : memory_.peak(config); }
  /// Bytes that the peak is not below.
  [[nodiscard]] Bytes memory_bound(const ParallelConfig& config) { return memory_.lower_bound(config); }
  [[nodiscard]] Bytes budget() const { return memory_.budget(); }
  /// Seconds that no strategy with these degrees and micro-batches is below, whatever its pipeline, sharding and recompute.
  [[nodiscard]] double time_bound(const ParallelConfig& head) {
    bounded_.reset();
    return time_.group_at_least(head).value;
  }
  /// Seconds that this strategy's step is not below; cheap next to step().
  [[nodiscard]] Seconds at_least(const ParallelConfig& config) {
    bounded_.reset();
    if (!planned(config)) return time_.at_least(config);
    if (planner_.plan(config).keeps_everything) return time_.at_least(kept(config));
    bounded_ = config;
    return time_.at_least(config, layout(config));
  }
  /// The same before the plan of the strategy is made, where it has one.
  [[nodiscard]] Seconds at_least_unplanned(const ParallelConfig& config) {
    bounded_.reset();
    return time_.at_least_any_mode(config);
  }
  [[nodiscard]] const layout::StageLayout& layout(const ParallelConfig& config) {
    return planned(config) ? *planner_.plan(config).layout : memory_.stage_layout(config);
  }

 private:
  [[nodiscard]] static bool planned(const ParallelConfig& config) { return config.recompute == Recompute::per_layer; }
  [[nodiscard]] static ParallelConfig kept(ParallelConfig config) {
    config.recompute = Recompute::off;
    return config;
  }

  memory::MemoryModel memory_;
  perf::TimeModel time_;
  plan::Planner planner_;
  std::optional<ParallelConfig> bounded_;  ///< planned, and what time_ has at hand
  MemoryBreakdown memory_scratch_;
  TimeBreakdown time_scratch_;
};

}  // namespace nd::search
