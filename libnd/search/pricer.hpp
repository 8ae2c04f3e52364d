// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/memory_model.hpp"
#include "nd/perf.hpp"
#include "nd/scenario.hpp"

namespace nd::search {

/// Memory and time of one strategy at a time, with the factors that strategies share kept between calls.
/// Thread-compatible: one per worker. The scenario must outlive it.
class Pricer {
 public:
  explicit Pricer(const Scenario& scenario) : scenario_(scenario), memory_(scenario) {}

  /// Valid until the next call.
  const MemoryBreakdown& memory(const ParallelConfig& config) {
    memory_.estimate(config, scratch_);
    return scratch_;
  }
  [[nodiscard]] TimeBreakdown time(const ParallelConfig& config) { return estimate_time(scenario_, config); }
  [[nodiscard]] const layout::StageLayout& layout(const ParallelConfig& config) { return memory_.stage_layout(config); }

 private:
  const Scenario& scenario_;
  memory::MemoryModel memory_;
  MemoryBreakdown scratch_;
};

}  // namespace nd::search
