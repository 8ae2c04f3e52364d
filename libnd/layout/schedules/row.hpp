// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nd/schedule.hpp"

namespace nd::layout {

struct StepTimes;
struct StepScratch;

/// Seconds of a chunk when all chunks are equal.
struct UniformTimes {
  double forward = 1, backward_input = 1, backward_weight = 1;
  double joined = 3;  ///< an overlapped forward and backward together: F&B
  [[nodiscard]] double backward() const { return backward_input + backward_weight; }
};

using PassList = std::vector<Pass>;

/// Peaks over a stage's list, which must be in order.
[[nodiscard]] HeldPeak count_held(std::span<const Pass> passes, int parts);

/// A pipeline schedule. Everything the rest of the library knows about it is here.
struct ScheduleRow {
  Schedule id = Schedule::one_f_one_b;
  std::string_view name;   ///< as in configuration files
  std::string_view title;  ///< for people
  std::string_view aliases = {};  ///< other spellings in configuration files, separated by spaces; '-' and '_' do not count
  std::string_view rule = {};     ///< what why_invalid demands, in words
  /// Why it cannot run with this shape; nullopt when it can. Positive fields are checked before.
  std::optional<std::string_view> (*why_invalid)(const ScheduleShape&) = nullptr;
  /// Appends the passes of one stage in order.
  void (*passes)(const ScheduleShape&, int stage, PassList& out) = nullptr;
  int (*local_chunks)(const ScheduleShape&) = nullptr;  ///< chunks a stage holds
  int (*positions)(const ScheduleShape&) = nullptr;     ///< places a micro-batch passes
  int (*position)(const ScheduleShape&, int stage, int chunk) = nullptr;
  bool splits_backward = false;
  bool joins_passes = false; ///< runs forwards and backwards as one block
  bool takes_parts = false;  ///< sequences may be split (shape.parts)
  bool takes_group = false;  ///< has a micro-batch group size (shape.group)
  int model_copies = 1;      ///< times each parameter exists along the pipeline
  /// Peaks of a stage, equal to those counted over its list (count_held).
  HeldPeak (*held)(const ScheduleShape&, int stage) = nullptr;
  /// Idle seconds of every stage with equal chunks and free transfers: makespan - busy. nullopt where no closed form is
  /// known to equal the replay; null: nowhere. Tested against the replay over all shapes up to p = 16, v = 4, m = 64.
  std::optional<double> (*bubble)(const ScheduleShape&, const UniformTimes&) = nullptr;
  /// Length of the step for any durations without the lists, equal to the replay; nullopt or null: the lists are run.
  /// Optional, for speed. Tested against the replay with random durations over random shapes.
  std::optional<double> (*length)(const ScheduleShape&, const StepTimes&, StepScratch&) = nullptr;
};

/// The row's own rule after the checks common to all schedules.
[[nodiscard]] std::optional<std::string_view> why_invalid(const ScheduleRow& row, const ScheduleShape& shape);

}  // namespace nd::layout
