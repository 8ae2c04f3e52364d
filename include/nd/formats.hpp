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
#include "nd/search_space.hpp"

namespace nd {

/// What a search config allows one dimension to be.
struct DimensionCandidates {
  Dimension dimension{};
  std::vector<std::int64_t> values;  ///< as value_of() counts; empty: whatever the rules allow
  SourceRef where;
  friend bool operator==(const DimensionCandidates&, const DimensionCandidates&) = default;
};

/// What one input file (and the files it names) states.
struct Request {
  std::string format;  ///< id of the reader that was used, "hf", "hyper_v2", "mindformers", ...
  std::string file;
  ModelSpec model;     ///< family defaults applied; empty where the files state a run only (Accelerate, DeepSpeed)
  RunSpec run;
  std::vector<Diagnostic> notes;  ///< warnings and notes: accepted but not priced, guessed format, ...
  /// There is a search config. A dimension that it does not name stays as the run states it, and varies when nobody states it.
  bool search_config = false;
  std::vector<DimensionCandidates> candidates;
};

/// One row of the format table.
struct FormatInfo {
  std::string_view id, title, suffixes;
  std::string_view aliases;  ///< further names for -f, separated by spaces
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

/// The files of one request, as the command line names them. Empty = not given.
struct RequestFiles {
  std::string main = {};        ///< -y; may be empty when `search` states a model or names a train.yaml
  std::string format = {};      ///< -f: id of a reader; empty = guessed from the content
  std::string train = {};       ///< --train-yaml: HyperParallel's, or training arguments of the Hugging Face Trainer
  std::string accelerate = {};  ///< --accelerate-yaml: HyperParallel's or Accelerate's YAML, or a DeepSpeed JSON
  std::string search = {};      ///< -s: a search config
};

/// Reads them all as one request: `train` and `accelerate` complete the main file, `search` lies over the result. A file that the
/// others leave no use for is refused, never ignored.
[[nodiscard]] Result<Request> read_request(const RequestFiles& files, const DataStore& data, const ReadOptions& options = {});

}  // namespace nd
