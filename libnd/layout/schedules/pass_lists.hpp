// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "layout/schedules/row.hpp"

namespace nd::layout {

/// The pass lists of all stages, checked: each stage runs every forward of its chunks once and its backward once after
/// it, whole or input half before weight half. Keeps its memory from shape to shape and does nothing when asked for the
/// same again. Not thread-safe; one per worker.
class PassLists {
 public:
  /// `row` must outlive the object.
  ReplayStatus build(const ScheduleRow& row, const ScheduleShape& shape);

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] int local_chunks() const { return local_chunks_; }
  [[nodiscard]] int positions() const { return positions_; }
  [[nodiscard]] int position(int stage, int chunk) const;
  [[nodiscard]] std::span<const Pass> stage(int stage) const;
  /// Peaks of the stage, counted over its list.
  [[nodiscard]] const HeldPeak& held(int stage) const { return held_[static_cast<std::size_t>(stage)]; }

 private:
  ReplayStatus fail(ReplayStatus status, std::string problem);
  ReplayStatus check_stage(int stage);

  const ScheduleRow* row_ = nullptr;
  ScheduleShape shape_;
  ReplayStatus status_ = ReplayStatus::invalid_shape;
  std::string problem_;
  int local_chunks_ = 0, positions_ = 0;
  PassList passes_;
  std::vector<std::size_t> first_;
  std::vector<HeldPeak> held_;
  std::vector<unsigned char> progress_;  ///< per chunk and unit of the stage in work
  std::size_t covered_ = 0;              ///< backwards found over all stages
};

/// Bytes of one chunk of one micro-batch on one stage.
struct ChunkBytes {
  double activations = 0;  ///< kept from forward to backward
  double deferred = 0;     ///< kept from the input to the weight half of the backward
};
/// Micro-batches of one chunk alive at an instant.
struct ChunkHeld {
  double activations = 0, deferred = 0;
};
/// The instant of the list at which most bytes are held; fills `held` (same size as `bytes`, one per local chunk) with
/// what is alive then and returns the bytes.
double largest_held(std::span<const Pass> passes, int parts, std::span<const ChunkBytes> bytes,
                    std::span<ChunkHeld> held);

}  // namespace nd::layout
