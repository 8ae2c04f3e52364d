// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/memory_model.hpp"
#include "nd/scenario.hpp"
#include "perf/time_model.hpp"

namespace nd::search {

/// Memory and time of one strategy at a time, with the factors that strategies share kept between calls.
/// Thread-compatible: one per worker. The scenario must outlive it.
class Pricer {
 public:
  explicit Pricer(const Scenario& scenario) : memory_(scenario), time_(scenario) {}

  /// Valid until the next call.
  const MemoryBreakdown& memory(const ParallelConfig& config) {
    memory_.estimate(config, memory_scratch_);
    return memory_scratch_;
  }
  /// Valid until the next call.
  const TimeBreakdown& time(const ParallelConfig& config) {
    time_.estimate(config, time_scratch_);
    return time_scratch_;
  }
  [[nodiscard]] Seconds step(const ParallelConfig& config) { return time(config).step; }
  /// What decides whether the strategy fits, without the breakdown.
  [[nodiscard]] memory::PeakMemory peak(const ParallelConfig& config) { return memory_.peak(config); }
  /// Bytes that the peak is not below.
  [[nodiscard]] Bytes memory_bound(const ParallelConfig& config) { return memory_.lower_bound(config); }
  [[nodiscard]] Bytes budget() const { return memory_.budget(); }
  /// Seconds that no strategy with these degrees and micro-batches is below, whatever its pipeline, sharding and recompute.
  [[nodiscard]] double time_bound(const ParallelConfig& head) { return time_.group_at_least(head).value; }
  /// Seconds that this strategy's step is not below; cheap next to step().
  [[nodiscard]] Seconds at_least(const ParallelConfig& config) { return time_.at_least(config); }
  [[nodiscard]] const layout::StageLayout& layout(const ParallelConfig& config) { return memory_.stage_layout(config); }

 private:
  memory::MemoryModel memory_;
  perf::TimeModel time_;
  MemoryBreakdown memory_scratch_;
  TimeBreakdown time_scratch_;
};

}  // namespace nd::search
