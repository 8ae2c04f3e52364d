// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "commands.hpp"

namespace nd_bench {

Exit refuse(Exit status, const std::vector<nd::Diagnostic>& problems) {
  for (const auto& problem : problems) std::fprintf(stderr, "%s\n", nd::to_text(problem).c_str());
  return status;
}

namespace {

int run(int count, char** words) {
  CLI::App app("nd_bench: runs candidates and says what was measured");
  app.set_version_flag("--version", std::string("nd_bench ") + nd::kVersion);
  app.require_subcommand(1);
  std::vector<std::pair<std::string, std::function<Exit()>>> commands;
  commands.emplace_back("plan", add_plan(app));
  commands.emplace_back("run", add_run(app));
  commands.emplace_back("resume", add_resume(app));
  commands.emplace_back("gather", add_gather(app));
  commands.emplace_back("compare", add_compare(app));
  commands.emplace_back("classify", add_classify(app));
  try {
    app.parse(count, words);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "error: command line: %s\n", error.what());
    return static_cast<int>(Exit::usage);
  }
  for (const auto& [name, command] : commands)
    if (app.got_subcommand(name)) return static_cast<int>(command());
  return static_cast<int>(Exit::usage);
}

}  // namespace

}  // namespace nd_bench

int main(int count, char** words) {
  try {
    return nd_bench::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: internal: %s (a bug of nd_bench: please report it)\n", error.what());
    return static_cast<int>(nd_bench::Exit::bug);
  }
}
