// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "nd/search.hpp"

namespace nd::search {

/// Ends a search early: at its time limit or when somebody asks. Thread-safe.
class Halt {
 public:
  explicit Halt(const SearchOptions& options) : stop_(options.stop) {
    if (options.time_limit)
      deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.time_limit->value));
  }
  /// Whether to end now. Once true it stays true.
  [[nodiscard]] bool now() {
    if (end_.load(std::memory_order_relaxed) != SearchEnd::complete) return true;
    if (stop_.stop_requested()) end_.store(SearchEnd::stopped, std::memory_order_relaxed);
    else if (deadline_ && Clock::now() >= *deadline_) end_.store(SearchEnd::time_limit, std::memory_order_relaxed);
    else return false;
    return true;
  }
  [[nodiscard]] SearchEnd end() const { return end_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::stop_token stop_;
  std::optional<Clock::time_point> deadline_;
  std::atomic<SearchEnd> end_{SearchEnd::complete};
};

}  // namespace nd::search
