// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/model_spec.hpp"
#include "nd/result.hpp"
#include "nd/run_spec.hpp"

namespace nd {

/// What one input file (and the files it names) states.
struct Request {
  std::string format;  ///< id of the reader that was used, "hf", "hyper_v2", "mindformers", ...
  std::string file;
  ModelSpec model;     ///< family defaults applied
  RunSpec run;
  std::vector<Diagnostic> notes;  ///< warnings and notes: accepted but not priced, guessed format, ...
};

/// One row of the format table.
struct FormatInfo {
  std::string_view id, title, suffixes;
};
[[nodiscard]] std::vector<FormatInfo> format_list();

/// What the command line says that decides how a file reads.
struct ReadOptions {
  std::optional<std::int64_t> devices;  ///< -d: degrees that a file leaves to the number of devices follow from it
};

/// Reads `path` (a file, a checkpoint folder with config.json, or the name of a model preset). `format` empty = guessed from the
/// content. Reports every problem of the file at once.
[[nodiscard]] Result<Request> read_request(const std::string& path, std::string_view format, const DataStore& data,
                                           const ReadOptions& options = {});

}  // namespace nd
