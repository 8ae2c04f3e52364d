// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "modes.hpp"
#include "output.hpp"
#include "pages.hpp"

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

/// Where this program lies, links resolved; empty when the system does not tell.
std::string own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

/// A full disk or a closed pipe shows when the stream is emptied.
Exit printed(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return stdout_written() ? Exit::done : Exit::output;
}

/// "-" is the standard input or output to many programs; here only --json takes it.
void refuse_dashes(const Options& options, std::vector<nd::Diagnostic>& problems) {
  for (const auto& [option, path] : {std::pair{"-y", &options.input}, std::pair{"-s", &options.search_config}, std::pair{"--train-yaml", &options.train_yaml},
                                     std::pair{"--accelerate-yaml", &options.accelerate_yaml}})
    if (*path == "-") problems.push_back(usage_error(option, "the standard input is not read", "give a file"));
  for (const auto& [option, path] : {std::pair{"-o", &options.output_dir}, std::pair{"--ranking_csv", &options.ranking_csv}, std::pair{"--report", &options.report},
                                     std::pair{"--trace", &options.trace}})
    if (*path == "-") problems.push_back(usage_error(option, "does not write to the standard output", "a path, or --json -"));
}

Exit run(const std::vector<std::string>& words) {
  auto parsed = parse_options(words);
  const auto& options = parsed.options;
  if (options.help) return printed(help_text());
  if (!options.generate.empty()) {
    const auto page = generated_page(options.generate);
    if (!page) return refuse({usage_error("--generate", "there is no page of '" + options.generate + "'", "markdown, man, bash, zsh, fish")});
    return printed(*page);
  }
  if (options.version) return printed("run_nd " + std::string(nd::kVersion) + "\n");
  if (parsed.problems.empty() && options.input.empty() && options.model.empty() && options.search_config.empty() && options.list.empty() &&
      options.real_csv.empty() && options.verify.empty() && options.census.empty() && options.parts.empty())
    parsed.problems.push_back(usage_error("-y", "is missing", "the configuration of the training run, e.g. run_nd -y train.yaml -d 64"));
  refuse_dashes(options, parsed.problems);
  if (!parsed.problems.empty()) {
    refuse(parsed.problems);
    return Exit::usage;
  }
  const auto folder = nd::find_data_folder(options.data_dir, own_path());
  if (!folder) return refuse({usage_error("--data-dir", folder.error().diagnostics.front().message, folder.error().diagnostics.front().hint)});
  const nd::DataStore data(*folder);
  switch (parsed.mode) {
    case kList: {
      const Exit status = run_list(options.list, data);
      return status == Exit::done && !stdout_written() ? Exit::output : status;
    }
    case kWhatIf: return run_what_if(options, data);
    case kSizes: return run_sizes(options, data);
    case kCompare: return run_compare(options, data);
    case kVerify: return run_verify(options, data);
    case kMerge: return run_merge(options, data);
    case kPages:
    case kExplain:
    case kSearch: break;
  }
  return run_search(parsed, data);
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
