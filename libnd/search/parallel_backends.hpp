// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace nd::search {

/// Runs chunk(index, worker) for every index below `chunks`, any order, at most `workers` at a time. `chunk` never throws.
struct ChunkLoop {
  std::size_t chunks = 0, workers = 1;
  std::function<void(std::size_t index, std::size_t worker)> chunk;
};

void run_on_threads(const ChunkLoop& loop);
#ifdef ND_HAS_TBB
void run_on_tbb(const ChunkLoop& loop);
#endif

}  // namespace nd::search
