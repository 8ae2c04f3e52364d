// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nd_validate {

struct Options {
  std::vector<std::string> tables;
  std::string json, report, markdown, bands, data_dir;
  int jobs = 0;
  int worst = 10;
  bool rows = false;
  bool fit = false;
  std::string folds = "none", write;
};

/// What parsing the command line leaves to do: run with `options`, or print `text` and end with `status`.
struct CommandLine {
  Options options;
  std::optional<int> status;
  std::string text;
};
[[nodiscard]] CommandLine parse_command_line(int argc, char** argv);

}  // namespace nd_validate
