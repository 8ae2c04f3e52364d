// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "nd/campaign.hpp"

namespace nd::harness {

/// Name of the variable by which every process of a run is known, however it has detached itself.
inline constexpr std::string_view kMark = "ND_BENCH_RUN";

struct ProcessRequest {
  Words command;
  Words environment;  ///< "NAME=VALUE", complete
  std::string mark;   ///< value of kMark; empty = none
};

/// A command in a session of its own, with both outputs in one pipe and nothing on its input. What it leaves behind is found by its session's
/// group and by kMark in the environment. Thread-compatible; the destructor kills what is left.
class Process {
 public:
  /// The command is looked up in the PATH of this process. Errors: io (cannot be started).
  [[nodiscard]] static Result<Process> start(const ProcessRequest& request);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  /// Waits up to `seconds` for output and appends what there is, at most 1 MiB. False: there was none.
  bool read(std::string& to, double seconds);
  /// Looks whether it has ended; keeps the exit status or signal.
  bool ended();
  [[nodiscard]] std::optional<int> exit_code() const { return exit_code_; }
  [[nodiscard]] std::optional<int> signal() const { return signal_; }
  /// SIGTERM to the group and everything marked; SIGKILL after `grace_s`. Output goes on being read and dropped into `to`.
  void end(double grace_s, std::string& to);

 private:
  Process(pid_t pid, int output, std::string mark) : pid_(pid), output_(output), mark_(std::move(mark)) {}
  void send(int number) const;
  pid_t pid_ = -1;
  int output_ = -1;
  std::string mark_;
  std::optional<int> exit_code_, signal_;
  bool ended_ = false;
};

/// Processes of this user whose mark starts with `mark` (never this one). Sends them the signal and returns how many there are.
std::size_t signal_marked(std::string_view mark, int number);
/// Kills them until none is left or `seconds` are over; returns how many are left.
std::size_t kill_marked(std::string_view mark, double seconds);
/// A port of the loopback interface that is free now; 0 when there is none.
[[nodiscard]] int free_port();
/// Runs a short command and gives its output; nullopt when it cannot be started, fails or takes longer.
[[nodiscard]] std::optional<std::string> output_of(const Words& command, const Words& environment, double seconds);

}  // namespace nd::harness
