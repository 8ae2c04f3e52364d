// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace run_nd {

/// While it lives, SIGINT and SIGTERM ask to stop instead of ending the program; the second one ends it. Make it before any other
/// thread: threads inherit what it blocks.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  [[nodiscard]] std::stop_token token() const { return asked_.get_token(); }

 private:
  void wait(const std::stop_token& over);
  sigset_t signals_{}, before_{};
  std::stop_source asked_;
  std::jthread waiter_;
};

}  // namespace run_nd
