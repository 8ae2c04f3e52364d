// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "nd/parallel_config.hpp"

namespace nd::memory {

/// Which micro-batches of which chunk a stage holds when it holds most.
struct KeptQuery {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1;
  int micro_batches = 1;
  double chunks = 1;  ///< chunks of one micro-batch alive at once on the stage, all chunks together
};

/// Spreads `query.chunks` over the chunks of a stage: counts[c] micro-batches of chunk c, at the moment of the schedule at
/// which sum(counts[c] * bytes[c]) is largest. Equal chunks: any moment of the steady state. docs/cost_model_memory.md#memory-in-flight.
/// counts.size() == bytes.size() == number of chunks.
void spread_chunks(const KeptQuery& query, std::span<const double> bytes, std::span<double> counts);

}  // namespace nd::memory
