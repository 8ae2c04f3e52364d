// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <exception>

#include "modes.hpp"

namespace run_nd {

Exit refuse(const std::vector<nd::Diagnostic>& problems) {
  bool usage = false;
  for (const auto& problem : problems) {
    std::fprintf(stderr, "%s\n", nd::to_text(problem).c_str());
    if (problem.severity != nd::Severity::error) continue;
    usage = usage || (problem.where.file.empty() && problem.where.path.starts_with('-'));
  }
  return usage ? Exit::usage : Exit::input;
}

namespace {

Exit run(const std::vector<std::string>& words) {
  auto parsed = parse_options(words);
  const auto& options = parsed.options;
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    return Exit::done;
  }
  if (options.help_markdown) {
    std::fputs(help_markdown().c_str(), stdout);
    return Exit::done;
  }
  if (options.version) {
    std::printf("run_nd %s\n", nd::kVersion);
    return Exit::done;
  }
  if (parsed.problems.empty() && options.input.empty() && options.model.empty() && options.list.empty())
    parsed.problems.push_back(usage_error("-y", "is missing", "the configuration of the training run, e.g. run_nd -y train.yaml -d 64"));
  if (!parsed.problems.empty()) {
    refuse(parsed.problems);
    return Exit::usage;
  }
  const auto folder = data_folder(options);
  if (!folder) return refuse(folder.error().diagnostics);
  const nd::DataStore data(*folder);
  if (!options.list.empty()) return run_list(options.list, data);
  return run_search(options, data);
}

}  // namespace

}  // namespace run_nd

int main(int count, char** words) {
  try {
    return static_cast<int>(run_nd::run({words + 1, words + std::max(1, count)}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: internal: %s (a bug of run_nd: please report it)\n", error.what());
    return static_cast<int>(run_nd::Exit::bug);
  }
}
