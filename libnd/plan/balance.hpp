// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "nd/schedule.hpp"

namespace nd::plan {

/// Consecutive layers of the model.
struct LayerRange {
  std::int64_t first = 0, count = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// A pipeline whose layers are to be laid out.
struct BalanceTask {
  Schedule schedule = Schedule::one_f_one_b;
  ScheduleShape shape;
  std::int64_t layers = 0;
  std::int64_t least = 1;            ///< layers a chunk holds at least
  std::vector<Seconds> hop = {};     ///< as ReplayInput::hop
  bool p2p_exposed = false;
  /// Times of a stage's chunks when they hold these layers, recomputed as its memory demands; false when they do not fit.
  /// A chunk's time must not fall when a layer is added. Called once per distinct question.
  std::function<bool(int stage, std::span<const LayerRange> chunks, std::span<PassTimes> times)> price;
  std::int64_t most_replays = 20'000;  ///< layouts tried at most
};

struct BalancedLayout {
  std::vector<std::vector<std::int64_t>> layers;  ///< [stage][chunk]
  Seconds makespan;          ///< replayed
  Seconds bound;             ///< no layout is faster than this
  bool proven = false;       ///< no layout is faster than `makespan`
  std::int64_t replays = 0;  ///< layouts replayed
};

/// The layout with the smallest replayed makespan; nullopt when none fits, or when the schedule holds a part of the model on two
/// stages (DualPipe). One chunk per stage: branch and bound over a dynamic
/// programme; exact unless `most_replays` ends it first. More chunks: exact by enumeration where all layouts can be tried,
/// else the best found by moving single layers between chunks, with the bound. The even split is among the layouts tried.
/// docs/cost_model_plan.md#balance
[[nodiscard]] std::optional<BalancedLayout> balance_layers(const BalanceTask& task);

}  // namespace nd::plan
