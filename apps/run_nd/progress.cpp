// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace run_nd {

namespace {
constexpr auto kQuiet = std::chrono::seconds(2);
constexpr std::chrono::milliseconds kTerminalPeriod{200}, kLogPeriod{2000};
constexpr std::int64_t kDefaultVerbosity = 2;
}  // namespace

Progress::Progress(const Options& options) : terminal_(isatty(STDERR_FILENO) != 0) {
  const auto verbosity = options.verbosity.value_or(kDefaultVerbosity);
  wanted_ = verbosity > 0 && (terminal_ || verbosity > kDefaultVerbosity);
}

std::function<void(std::int64_t)> Progress::callback() {
  if (!wanted_) return {};
  return [this](std::int64_t done) { show(done); };
}

void Progress::show(std::int64_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < kQuiet || now - last_ < (terminal_ ? kTerminalPeriod : kLogPeriod)) return;
  last_ = now;
  shown_ = true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
  std::fprintf(stderr, terminal_ ? "\r%lld strategies done, %lld s" : "%lld strategies done, %lld s\n", static_cast<long long>(done), static_cast<long long>(seconds));
}

void Progress::clear() {
  if (shown_ && terminal_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace run_nd
