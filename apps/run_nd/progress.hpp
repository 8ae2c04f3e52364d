// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "options.hpp"

namespace run_nd {

/// Long searches show on standard error that they are alive: on a terminal, or with -v 3 and more.
class Progress {
 public:
  explicit Progress(const Options& options);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// For SearchOptions::progress; empty when nothing is to be shown. Valid as long as this object.
  [[nodiscard]] std::function<void(std::int64_t)> callback();
  /// Takes the line away.
  void clear();

 private:
  void show(std::int64_t done);
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_ = start_;
  bool wanted_ = false, terminal_ = false, shown_ = false;
};

}  // namespace run_nd
