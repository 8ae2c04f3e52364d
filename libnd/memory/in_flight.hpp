// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nd/parallel_config.hpp"

namespace nd::memory {

/// How many micro-batches of each chunk a stage holds at the moments of its schedule at which it may hold most: every other
/// moment holds no more of any chunk than one of these. docs/cost_model_memory.md#memory-in-flight.
class KeptFront {
 public:
  /// A number of micro-batches with the same moments as that of `config`, the smaller the better: what differs in it shares one.
  [[nodiscard]] static int representative_batch(const ParallelConfig& config);

  /// Walks the passes of `stage`. A chunk counts from the start of its forward to the end of its backward, weight half included.
  KeptFront(const ParallelConfig& config, int stage, std::size_t chunks);

  [[nodiscard]] std::size_t moments() const { return counts_.size() / chunks_; }
  /// Micro-batches by chunk.
  [[nodiscard]] std::span<const double> moment(std::size_t n) const { return {counts_.data() + n * chunks_, chunks_}; }
  /// True when at every moment of `other` this one holds as much of every chunk at some moment of its own.
  [[nodiscard]] bool covers(const KeptFront& other) const;
  /// The moment with most bytes, `bytes` being those of one micro-batch by chunk.
  [[nodiscard]] std::span<const double> heaviest(std::span<const double> bytes) const;

 private:
  void offer(std::span<const double> counts);

  std::size_t chunks_;
  std::vector<double> counts_;  ///< row by row
};

}  // namespace nd::memory
