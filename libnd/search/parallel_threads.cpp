// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>
#include <vector>

#include "search/parallel_backends.hpp"

namespace nd::search {

void run_on_threads(const ChunkLoop& loop) {
  std::atomic<std::size_t> next{0};
  const auto work = [&loop, &next](std::size_t worker) {
    for (std::size_t index = next.fetch_add(1); index < loop.chunks; index = next.fetch_add(1)) loop.chunk(index, worker);
  };
  std::vector<std::jthread> threads;
  threads.reserve(loop.workers);
  // The calling thread is worker 0; the others join when the vector goes.
  for (std::size_t worker = 1; worker < loop.workers; ++worker) threads.emplace_back(work, worker);
  work(0);
}

}  // namespace nd::search
