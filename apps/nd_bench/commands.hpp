// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "nd/nd.hpp"

namespace nd_bench {

/// Exit status of the program.
enum class Exit : int { done = 0, answer_is_no = 1, usage = 2, input = 3, output = 4, bug = 70 };

/// Prints the problems, one line each.
Exit refuse(Exit status, const std::vector<nd::Diagnostic>& problems);

/// Each adds its subcommand to the parser; the returned function runs it once the words are parsed.
[[nodiscard]] std::function<Exit()> add_classify(CLI::App& app);
[[nodiscard]] std::function<Exit()> add_plan(CLI::App& app);
[[nodiscard]] std::function<Exit()> add_run(CLI::App& app);
[[nodiscard]] std::function<Exit()> add_resume(CLI::App& app);
[[nodiscard]] std::function<Exit()> add_gather(CLI::App& app);
[[nodiscard]] std::function<Exit()> add_compare(CLI::App& app);

}  // namespace nd_bench
