// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "layout/layout.hpp"
#include "memory/stage_pricer.hpp"
#include "nd/memory.hpp"

namespace nd::memory {

/// Prices the memory of many strategies of one scenario. Keeps what strategies share: ledgers by LayerShape, layouts by what
/// they depend on. After warm-up (every shape and layout seen once) estimate() allocates nothing.
/// Thread-compatible: one per worker. The scenario must outlive it.
class MemoryModel {
 public:
  explicit MemoryModel(const Scenario& scenario) : scenario_(scenario), budget_(memory_budget(scenario)) {}

  /// Memory of every stage into `out`, whose storage is reused. Precondition: the strategy is legal for the scenario.
  void estimate(const ParallelConfig& config, MemoryBreakdown& out, ReadingTime reading = ReadingTime::steady);
  /// Lines of one stage at its peak instant; they sum to `allocated`.
  [[nodiscard]] std::vector<MemoryLine> ledger(const ParallelConfig& config, int stage);

  [[nodiscard]] const ShapeSummary& shape_summary(const ParallelConfig& config);
  /// What each stage holds, chunks in the places the schedule gives them (V shapes, both directions).
  [[nodiscard]] const layout::StageLayout& stage_layout(const ParallelConfig& config);

 private:
  struct LayoutKey {
    int pp = 1, vpp = 1;
    Recompute recompute = Recompute::off;
    Schedule schedule = Schedule::one_f_one_b;
    friend auto operator<=>(const LayoutKey&, const LayoutKey&) = default;
  };

  struct FrontKey {
    int pp = 1, vpp = 1, micro_batch_num = 1, seq_split = 1;
    Schedule schedule = Schedule::one_f_one_b;
    friend auto operator<=>(const FrontKey&, const FrontKey&) = default;
  };

  [[nodiscard]] const std::vector<KeptFront>& fronts(const ParallelConfig& config);

  const Scenario& scenario_;
  Bytes budget_;
  std::map<LayerShape, ShapeSummary> shapes_;
  std::map<LayoutKey, layout::StageLayout> layouts_;
  std::map<FrontKey, std::vector<KeptFront>> fronts_;  ///< by stage
  StagePrice price_;  ///< scratch
};

}  // namespace nd::memory
