// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "layout/layout.hpp"
#include "memory/memory_model.hpp"
#include "perf/time_model.hpp"
#include "plan/knapsack.hpp"

namespace nd::plan {

/// What the layers of one strategy do, and what that takes.
struct StrategyPlan {
  const layout::StageLayout* layout = nullptr;  ///< chunks in the places the schedule gives them
  memory::PeakMemory peak;                      ///< fit is no: the plan that needs least, for a message
  bool keeps_everything = false;                ///< priced exactly as Recompute::off
};

/// Gives every layer of a strategy with Recompute::per_layer its mode: stage by stage the fastest that fits. The plan depends
/// on scenario and strategy alone. With one chunk per stage it is exact; with several, exact where one or two moments of the
/// schedule decide, and otherwise safe. docs/cost_model_plan.md#per-layer
/// Keeps tables and storage between calls. Thread-compatible: one per worker; scenario and models must outlive it. The
/// scenario states no lists of recomputed layers.
class Planner {
 public:
  Planner(const Scenario& scenario, memory::MemoryModel& memory, perf::TimeModel& time) : scenario_(scenario), memory_(memory), time_(time) {}

  /// Valid until the next call with another strategy. Precondition: legal, recompute is per_layer.
  const StrategyPlan& plan(const ParallelConfig& config);

 private:
  /// Layers of one kind, or the MTP blocks, of one chunk.
  struct Unit {
    std::size_t chunk = 0, kind = 0;  ///< kind: number of kinds for MTP blocks
    std::int64_t layers = 0;
    const memory::LedgerSummary* ledger = nullptr;
    bool first = false;               ///< what the end of the last backward still keeps one layer of
    std::array<double, kLayerModes> working{};  ///< bytes of a layer's backward by mode
  };
  /// What one stage leaves for the layers of its units.
  struct Room {
    double loss = 0, backward = 0, end = 0, fixed = 0;  ///< held without what the modes decide
    bool end_piles = false;  ///< the end of the backward keeps one layer's activations
    bool end_keeps = false;  ///< ... or all of them
  };
  struct Stage {
    const memory::MemoryModel::Parts* parts = nullptr;
    memory::StageInput input;
    std::size_t index = 0;
  };
  /// One of the modes of every unit: layers[unit][mode].
  using Counts = std::vector<std::array<std::int64_t, kLayerModes>>;
  struct Solution {
    Counts layers;
    double seconds = 0, bytes = 0;
    bool found = false;
  };
  /// Moments of the schedule whose activations are limited: one or two rows of micro-batches by chunk.
  struct Watched {
    std::vector<double> first, second;
  };

  /// Gives every stage what `decide` finds, equal stages once; true when all fit.
  bool for_stages(const ParallelConfig& config, const memory::MemoryModel::Parts& parts, void (Planner::*decide)(const Stage&));
  void plan_lightest(const Stage& stage);
  void plan_fastest(const Stage& stage);
  void collect_units(const Stage& stage);
  [[nodiscard]] Room room(const Stage& stage, std::span<const double> counts);
  /// Bytes of tables that `counts` micro-batches keep.
  [[nodiscard]] double table_bytes(const Stage& stage, std::span<const double> counts) const;
  void solve(const Stage& stage, const Watched& watched);
  void solve_lightest(const Stage& stage, std::span<const double> counts);
  bool group_units(double working, const MomentBytes& budget, const Watched& watched);
  /// Gives the units their share of what was chosen for their groups: the modes that recompute most to the first chunks.
  void spread_chosen();
  void choose(double working, const MomentBytes& budget, const Watched& watched);
  [[nodiscard]] std::optional<double> choose_one(const MomentBytes& budget);
  [[nodiscard]] double end_bytes(const Unit& unit, std::size_t mode) const {
    return unit.first ? unit.ledger->saved[mode] / static_cast<double>(unit.layers) : 0.0;
  }
  /// Prices the stage with best_; true when it fits.
  bool accept(const Stage& stage);
  const std::vector<perf::TimeModel::ModeSeconds>& seconds(const ParallelConfig& config);

  const Scenario& scenario_;
  memory::MemoryModel& memory_;
  perf::TimeModel& time_;
  std::optional<ParallelConfig> at_, seconds_at_;
  std::vector<perf::TimeModel::ModeSeconds> seconds_;
  StrategyPlan plan_;
  layout::StageLayout planned_;
  std::vector<StageMemory> priced_;  ///< by stage
  // Of the stage at hand.
  memory::StagePrice price_;
  std::vector<Unit> units_;
  std::vector<double> thresholds_;
  std::vector<LayerGroup> groups_;      ///< units that are alike as one
  std::vector<std::size_t> group_of_;   ///< by unit
  std::size_t group_count_ = 0;
  std::vector<std::array<bool, kLayerModes>> allowed_;  ///< by group
  Counts chosen_;                       ///< by group
  Solution best_, now_;
};

}  // namespace nd::plan
