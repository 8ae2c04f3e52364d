// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/placeholders.hpp"
#include "nd/bench.hpp"

namespace nd::harness {

/// data/launchers/<name>.yaml, schema nd/launcher/1: how a run becomes a command. A word that is just {program} or {arguments} stands for
/// all of its words; empty words of placeholders alone are left out.
struct Launcher {
  std::string name, title;
  Words command, single;  ///< `single`: for one device, where it differs
  NamedTexts environment, options;
  std::string script;     ///< batch systems: text of the job script
  Words submit, poll, cancel;
  std::map<std::string, RunStatus> states;  ///< of the batch system; states that are not here have not ended
  Words ended_well;                         ///< states of success
  double poll_s = 5;
  Words logs;             ///< files in the run's folder that hold output besides the standard one; the first * stands for anything
  [[nodiscard]] bool batch() const { return !submit.empty(); }
};
[[nodiscard]] Result<Launcher> read_launcher(std::string_view name, const DataStore& data);

/// What is only known when a run starts.
struct LaunchPlace {
  std::string run_dir;
  Words devices;
  int port = 0;
};
/// A command with its additions to the environment.
struct Launch {
  Words command;
  NamedTexts environment;
  std::string script;     ///< text of the job script, filled in
  Values values;
};
/// Fills the template. Errors: a placeholder without a value.
[[nodiscard]] Result<Launch> make_launch(const Launcher& launcher, const Campaign& campaign, const PlannedRun& run, const LaunchPlace& place);

/// The word as a POSIX shell reads it back.
[[nodiscard]] std::string shell_quoted(std::string_view word);

}  // namespace nd::harness
