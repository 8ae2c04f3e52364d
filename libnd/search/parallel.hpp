// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

#include "nd/search.hpp"

namespace nd::search {

/// The one this build uses by default.
[[nodiscard]] Backend default_backend();
[[nodiscard]] bool has_backend(Backend backend);

struct LoopOptions {
  std::size_t grain = 1;  ///< indices handed out at once
  int jobs = 0;           ///< workers at most; 0 = as many as the machine has cores
  std::stop_token stop;   ///< when stop is requested no further chunk begins
  Backend backend = default_backend();
};

/// A part of the index range. `worker` is below worker_count(jobs), and no two chunks with the same number run at once:
/// the key of per-worker scratch.
struct LoopChunk {
  std::size_t begin = 0, end = 0;
  std::size_t worker = 0;
};

/// Runs `body` over [0, n) in chunks. Returns when all are done. When bodies throw, chunks behind the lowest failing index
/// may be left out, those before it all run, and the exception of the lowest chunk is rethrown: failures do not depend on
/// the number of workers. Thread-safe.
void parallel_for_index(std::size_t n, const LoopOptions& options, const std::function<void(const LoopChunk&)>& body);

/// Workers that `jobs` stands for; at least 1.
[[nodiscard]] std::size_t worker_count(int jobs);

}  // namespace nd::search
