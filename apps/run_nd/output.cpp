// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "modes.hpp"
#include "nd/output_check.hpp"

namespace run_nd {

bool talks(const Options& options) { return options.verbosity.value_or(2) > 0 && options.json != "-"; }

std::vector<nd::Diagnostic> output_conflicts(const Options& options, const std::string& input, const std::vector<std::string>& resolved) {
  std::vector<nd::NamedFile> inputs{{"-y", input}}, outputs;
  if (options.device_type.find('/') != std::string::npos || options.device_type.ends_with(".yaml")) inputs.push_back({"-A", options.device_type});
  for (const auto& [option, path] : {std::pair{"--json", &options.json}, std::pair{"--ranking_csv", &options.ranking_csv},
                                     std::pair{"--part", &options.part}, std::pair{"--trace", &options.trace}, std::pair{"--report", &options.report}})
    if (!path->empty()) outputs.push_back({option, *path});
  if (!options.output_dir.empty())
    for (const char* name : {"ranking.csv", "search.json", "report.html"}) outputs.push_back({"-o", options.output_dir + "/" + name});
  // Of many ranks only the one that has the input's own name can be the input.
  constexpr std::size_t kMostOutputs = 16;
  const auto name = std::filesystem::path(input).filename();
  for (const auto& path : resolved)
    if (outputs.size() < kMostOutputs || std::filesystem::path(path).filename() == name) outputs.push_back({"-o", path});
  return nd::check_outputs(inputs, outputs);
}

bool write_document(const std::string& text, const std::string& path) {
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return stdout_written();
  }
  const auto problem = nd::write_text_file(path, text);
  if (problem) refuse({*problem});
  return !problem;
}

bool stdout_written() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  refuse({nd::make_diagnostic(nd::Errc::io, {"standard output", 0, 0, {}}, "cannot be written")});
  return false;
}

}  // namespace run_nd
