// SPDX-License-Identifier: Apache-2.0
#include "search/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "nd/result.hpp"
#include "search/parallel_backends.hpp"

namespace nd::search {

namespace {

/// Keeps the failure of the lowest chunk.
class FirstFailure {
 public:
  [[nodiscard]] bool before(std::size_t index) const { return lowest_.load(std::memory_order_relaxed) < index; }
  void record(std::size_t index, std::exception_ptr what) {
    const std::scoped_lock lock(mutex_);
    if (index >= lowest_.load(std::memory_order_relaxed)) return;
    lowest_.store(index, std::memory_order_relaxed);
    what_ = std::move(what);
  }
  void rethrow() const {
    if (what_) std::rethrow_exception(what_);
  }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> lowest_{std::numeric_limits<std::size_t>::max()};
  std::exception_ptr what_;
};

void run(Backend backend, const ChunkLoop& loop) {
  if (loop.workers == 1 || loop.chunks <= 1) {
    for (std::size_t index = 0; index < loop.chunks; ++index) loop.chunk(index, 0);
    return;
  }
#ifdef ND_HAS_TBB
  if (backend == Backend::tbb) return run_on_tbb(loop);
#endif
  ND_CHECK(backend == Backend::threads);
  run_on_threads(loop);
}

}  // namespace

bool has_backend([[maybe_unused]] Backend backend) {
#ifdef ND_HAS_TBB
  return true;
#else
  return backend == Backend::threads;
#endif
}

Backend default_backend() { return has_backend(Backend::tbb) ? Backend::tbb : Backend::threads; }

std::size_t worker_count(int jobs) {
  if (jobs > 0) return static_cast<std::size_t>(jobs);
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

void parallel_for_index(std::size_t n, const LoopOptions& options, const std::function<void(const LoopChunk&)>& body) {
  if (n == 0) return;
  const std::size_t grain = std::max<std::size_t>(1, options.grain);
  const std::size_t chunks = (n - 1) / grain + 1;
  FirstFailure failure;
  const auto chunk = [&](std::size_t index, std::size_t worker) {
    if (options.stop.stop_requested() || failure.before(index)) return;
    try {
      const std::size_t begin = index * grain;
      body({.begin = begin, .end = std::min(n, begin + grain), .worker = worker});
    } catch (...) {
      failure.record(index, std::current_exception());
    }
  };
  run(options.backend, {.chunks = chunks, .workers = std::min(worker_count(options.jobs), chunks), .chunk = chunk});
  failure.rethrow();
}

}  // namespace nd::search
