// SPDX-License-Identifier: Apache-2.0
#include "nd/output_check.hpp"

#include <filesystem>
#include <system_error>

#include "core/file.hpp"

namespace nd {

namespace {

bool replaceable(const std::string& path) {
  std::error_code error;
  return path != "-" && (!std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error));
}

}  // namespace

std::vector<Diagnostic> check_outputs(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (!replaceable(output.path)) continue;
    const SourceRef where{{}, 0, 0, output.option};
    for (const NamedFile& input : inputs)
      if (core::same_file(output.path, input.path))
        problems.push_back(make_diagnostic(Errc::conflict, where, output.path + " is what " + input.option + " reads and would be overwritten",
                                           "name another file"));
    for (std::size_t other = 0; other < i; ++other)
      if (replaceable(outputs[other].path) && core::same_file(output.path, outputs[other].path))
        problems.push_back(make_diagnostic(Errc::conflict, where, output.path + " is what " + outputs[other].option + " writes as well",
                                           "name another file"));
  }
  return problems;
}

}  // namespace nd
