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
  CLI::App app("nd_bench: what measured runs say");
  app.set_version_flag("--version", std::string("nd_bench ") + nd::kVersion);
  app.require_subcommand(1);
  const auto classify = add_classify(app);
  try {
    app.parse(count, words);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "error: command line: %s\n", error.what());
    return static_cast<int>(Exit::usage);
  }
  return static_cast<int>(classify());
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
