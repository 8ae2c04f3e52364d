// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <vector>

#include "layout/layout.hpp"
#include "memory/peak_bound.hpp"
#include "memory/stage_pricer.hpp"
#include "nd/memory.hpp"

namespace nd::memory {

/// What decides whether a strategy fits.
struct PeakMemory {
  Bytes reserved{};  ///< StageMemory::reserved of the peak stage
  Fit fit = Fit::no;
};

/// Prices the memory of many strategies of one scenario. Keeps what strategies share: ledgers by LayerShape, layouts and moments
/// of the schedule by what they depend on, and what neighbours share: strategies that differ in the ZeRO level and its ranks only
/// are cheapest one after the other. After warm-up (every shape and layout seen once) no call but ledger() allocates; what is
/// kept is bounded.
/// Thread-compatible: one per worker. The scenario must outlive it.
class MemoryModel {
 public:
  explicit MemoryModel(const Scenario& scenario) : scenario_(scenario), budget_(memory_budget(scenario)) {}

  /// Memory of every stage into `out`, whose storage is reused. Precondition: the strategy is legal for the scenario.
  void estimate(const ParallelConfig& config, MemoryBreakdown& out, ReadingTime reading = ReadingTime::steady);
  /// The same with the layers, and what they recompute, as `layout` has them: scheduled_layout() with other modes.
  void estimate(const ParallelConfig& config, const layout::StageLayout& layout, MemoryBreakdown& out, ReadingTime reading = ReadingTime::steady);
  /// What the price of each stage is made of. Valid until the next call with another strategy.
  struct Parts {
    const layout::StageLayout& layout;
    const ShapeSummary& shape;
    const StateRates& rates;
    const ReserveRule& reserve;
    const std::vector<KeptFront>& fronts;  ///< by stage
    [[nodiscard]] StageInput stage(const Scenario& scenario, const ParallelConfig& config, std::span<const layout::Chunk> chunks, std::size_t s) const {
      return {scenario, config, shape, rates, reserve, chunks, fronts[s], static_cast<int>(s)};
    }
  };
  [[nodiscard]] Parts parts(const ParallelConfig& config);
  /// Peak and fit as estimate() finds them. Looks only at stages that no other one covers (same content, no fewer kept).
  [[nodiscard]] PeakMemory peak(const ParallelConfig& config);
  /// What that peak cannot be below: states and kept layers. docs/cost_model_memory.md#memory-bound
  [[nodiscard]] Bytes lower_bound(const ParallelConfig& config);
  [[nodiscard]] Bytes budget() const { return budget_; }
  /// Lines of one stage at its peak instant; they sum to `allocated`.
  [[nodiscard]] std::vector<MemoryLine> ledger(const ParallelConfig& config, int stage) { return ledger(config, stage_layout(config), stage); }
  [[nodiscard]] std::vector<MemoryLine> ledger(const ParallelConfig& config, const layout::StageLayout& layout, int stage);

  /// Valid until the next call with another strategy.
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
    int pp = 1, vpp = 1, micro_batch_num = 1, micro_batch_group = 0, seq_split = 1;
    Schedule schedule = Schedule::one_f_one_b;
    friend auto operator<=>(const FrontKey&, const FrontKey&) = default;
  };
  struct PipelineKey {
    FrontKey front;
    Recompute recompute = Recompute::off;
    friend auto operator<=>(const PipelineKey&, const PipelineKey&) = default;
  };
  /// A stage that no other one covers.
  struct LeadingStage {
    std::size_t stage = 0;
    KeptLayers kept;
  };
  struct Pipeline {
    const layout::StageLayout* layout = nullptr;
    const std::vector<KeptFront>* fronts = nullptr;
    std::vector<LeadingStage> leading;
  };
  /// State rates of one sharding within the set of degrees at hand.
  struct Sharding {
    ZeroLevel zero = ZeroLevel::none;
    int op = 1;
    bool accumulates = false;
    StateRates rates;
    StaticRates bound;
  };

  [[nodiscard]] const std::vector<KeptFront>& fronts(const ParallelConfig& config);
  [[nodiscard]] const Pipeline& pipeline(const ParallelConfig& config);
  [[nodiscard]] const Sharding& sharding(const ParallelConfig& config);
  /// Makes `now_` what `config` needs.
  void move_to(const ParallelConfig& config);

  const Scenario& scenario_;
  Bytes budget_;
  std::map<LayerShape, ShapeSummary> shapes_;
  std::map<LayoutKey, layout::StageLayout> layouts_;
  std::map<FrontKey, std::vector<KeptFront>> fronts_;  ///< by stage
  std::map<PipelineKey, Pipeline> pipelines_;
  StagePrice price_;  ///< scratch of estimate()

  /// What the last strategies of peak() and lower_bound() had in common.
  struct Now {
    bool set = false;
    ParallelConfig config;
    const ShapeSummary* shape = nullptr;
    const Pipeline* pipeline = nullptr;
    ReserveRule reserve;
    bool prepared = false;               ///< stages: prepare_stage() was called for this shape and pipeline
    std::vector<ElementCount> elements;  ///< of the leading stages
    std::vector<double> kept;            ///< bytes of their kept layers, at least
  } now_;
  std::vector<StagePrice> stages_;  ///< of the leading stages
  std::vector<Sharding> shardings_;
};

}  // namespace nd::memory
