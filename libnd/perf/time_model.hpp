// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "layout/layout.hpp"
#include "nd/perf.hpp"
#include "nd/scenario.hpp"
#include "perf/chunk_time.hpp"
#include "perf/data_parallel.hpp"
#include "perf/layer_time.hpp"
#include "perf/pipeline.hpp"
#include "perf/pipeline_replay.hpp"

namespace nd::perf {

/// Prices many strategies of one scenario. Keeps what strategies have in common: layer times per shape and placement, group
/// placements per set of degrees, layouts per pipeline; and what neighbours have in common: strategies that differ in the
/// sharding only are cheapest one after the other. Once a shape, a set of degrees and a layout have been seen, estimate()
/// allocates nothing; what is kept is bounded. One per worker: thread-compatible. `scenario` must outlive it.
class TimeModel {
 public:
  explicit TimeModel(const Scenario& scenario);

  /// Precondition: `config` is legal for the scenario. Overwrites `out`.
  void estimate(const ParallelConfig& config, TimeBreakdown& out);
  /// Never more than the step of `estimate`, for the price of everything but the replay of the pipeline; estimate() of the same
  /// strategy right after reuses it. For a search to drop what cannot be among its best. Same precondition.
  [[nodiscard]] Seconds at_least(const ParallelConfig& config);
  /// The same for the layers, and what they recompute, as `layout` has them: scheduled_layout() with other modes.
  [[nodiscard]] Seconds at_least(const ParallelConfig& config, const layout::StageLayout& layout);
  void estimate(const ParallelConfig& config, const layout::StageLayout& layout, TimeBreakdown& out);
  [[nodiscard]] PipelinePasses passes(const ParallelConfig& config, const layout::StageLayout& layout);
  /// Never more than the step of `config` whatever its layers recompute.
  [[nodiscard]] Seconds at_least_any_mode(ParallelConfig config);
  /// What the last call priced, in full.
  void estimate_again(TimeBreakdown& out);
  /// Seconds of one layer for one micro-batch by mode, kind by kind, then an MTP block.
  using ModeSeconds = std::array<double, kLayerModes>;
  void mode_seconds(const ParallelConfig& config, std::vector<ModeSeconds>& out);
  /// Never more than the step of any strategy with the degrees and micro-batches of `head`, whatever its pipeline choices, ZeRO
  /// level and recompute: the mean stage's passes and the fixed cost of a step.
  [[nodiscard]] Seconds group_at_least(const ParallelConfig& head);
  /// The passes behind that estimate. Same precondition.
  [[nodiscard]] PipelinePasses passes(const ParallelConfig& config);

 private:
  /// Group placements of one set of degrees.
  struct Groups {
    LayerPlacements layer;
    Placement pipeline;
    DataParallelPlan data;
    double tied_table = 0;  ///< seconds to add up the gradients of a tied table
  };
  /// A layout with equal chunks and equal stages stored once.
  struct FoldedLayout {
    std::vector<const layout::Chunk*> chunks;  ///< distinct, of the layout that was folded
    std::vector<std::uint32_t> chunk_of;    ///< [stage * chunks_per_stage + chunk] -> index into chunks
    std::vector<std::uint32_t> stages;      ///< one number per distinct stage
    int chunks_per_stage = 1, model_copies = 1;  ///< as the schedule places them
    bool balanced = false;
    layout::StageLayout whole;              ///< what `chunks` points to, unless that is the caller's
    void add(const layout::Chunk& chunk);
  };
  struct DegreesKey {
    std::array<int, 8> value{};
    friend bool operator==(const DegreesKey&, const DegreesKey&) = default;
  };
  struct ShapeKey {
    LayerShape shape;
    LayerPlacements groups;
    double exchange_window = 0;  ///< share of a layer's compute that its token exchanges run behind
    friend bool operator==(const ShapeKey&, const ShapeKey&) = default;
  };
  struct LayoutKey {
    std::array<int, 4> value{};
    friend bool operator==(const LayoutKey&, const LayoutKey&) = default;
  };
  struct Hash {
    std::size_t operator()(const DegreesKey& key) const;
    std::size_t operator()(const ShapeKey& key) const;
    std::size_t operator()(const LayoutKey& key) const;
  };

  /// One entry of the table of exchanges: direct-mapped, so that its size is fixed.
  struct KnownExchange {
    const Groups* groups = nullptr;
    Elements elements;
    ExchangeSeconds seconds;
  };

  const Groups& groups(const ParallelConfig& config);
  const ShapeTimes& shape_times(const ParallelConfig& config, const LayerPlacements& placements);
  const FoldedLayout& folded_layout(const ParallelConfig& config);
  /// Everything but `whole`.
  void fold(const ParallelConfig& config, const layout::StageLayout& full, FoldedLayout& out) const;

  [[nodiscard]] ShapeTimes make_shape_times(const ShapeKey& key) const;
  [[nodiscard]] ChunkTime stage_time(const FoldedLayout& layout, std::size_t stage) const;
  /// Fills chunk_times_ with the times of the layout's distinct chunks.
  void price_chunks(const FoldedLayout& layout, const ShapeTimes& times, const Groups& groups);
  /// Looks up or makes all that the strategy shares with others, prices its chunks and what happens once per step.
  void prepare(const ParallelConfig& config);
  void prepare(const ParallelConfig& config, const layout::StageLayout& layout);
  /// Degrees, shape and placements; true when they and the pipeline are those of the strategy before.
  bool move_to(const ParallelConfig& config);
  void price_passes(const FoldedLayout& layout);
  [[nodiscard]] PipelinePasses passes();
  [[nodiscard]] Seconds at_least_prepared();
  /// The prepared layout's chunks as the schedule places them; valid until the next candidate.
  [[nodiscard]] PipelineWork pipeline_work();
  [[nodiscard]] PartSeconds pipeline_parts();
  [[nodiscard]] double message_seconds(const Placement& pipeline, double bytes) const;
  [[nodiscard]] PartSeconds step_parts(const Groups& groups);
  [[nodiscard]] const ExchangeSeconds& exchange(const Groups& groups, const Elements& elements);
  /// Drops what searches have left behind when the tables are full.
  void bound_tables();
  [[nodiscard]] double tied_table_seconds(const ParallelConfig& config, const Groups& groups) const;

  const Scenario& scenario_;
  DeviceRates rates_;
  double trained_share_ = 1;
  double table_elements_ = 0;  ///< of a tied token table, whole model; 0 when head and table are two
  std::unordered_map<DegreesKey, Groups, Hash> groups_;
  std::unordered_map<ShapeKey, ShapeTimes, Hash> shapes_;
  std::unordered_map<LayoutKey, FoldedLayout, Hash> layouts_;
  std::unordered_map<ShapeKey, double, Hash> model_seconds_;  ///< of ShapeTimes, for bounds: far smaller than those
  // The candidate at hand.
  struct Prepared {
    ParallelConfig config;
    const Groups* groups = nullptr;
    const ShapeTimes* shape = nullptr;
    const FoldedLayout* layout = nullptr;
    PartSeconds once;  ///< exchange, optimizer, overhead
    std::optional<PartSeconds> passes;       ///< pipeline_parts(), once asked for
    std::optional<double> passes_at_least;   ///< seconds
  };
  std::optional<Prepared> at_;
  FoldedLayout planned_;  ///< of the caller's layout
  std::vector<ChunkTime> stage_times_;  ///< of the layout's distinct stages
  std::vector<KnownExchange> exchanges_;
  std::vector<ChunkTime> chunk_times_;
  std::vector<ChunkSeconds> chunk_seconds_;
  PipelineReplay replay_;
};

}  // namespace nd::perf
