// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/tree/node.hpp"
#include "nd/data_store.hpp"
#include "nd/formats.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// Every reader of a whole request has this signature: a parsed document, the path it came from (files named inside are
/// relative to its folder), the data folder and what the command line adds. A reader collects all problems of the document and returns them together;
/// what was accepted but not priced or assumed goes into Request::notes. It fills everything but Request::format and
/// Request::file, which the registry sets. No state; thread-safe.
using ReadFunction = Result<Request> (*)(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options);

/// A Hugging Face config.json: the model only; the run stays empty.
[[nodiscard]] Result<Request> read_hf(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// A HyperParallel train.yaml, AutoModels and legacy schema.
[[nodiscard]] Result<Request> read_hyper_v2(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// A MindFormers YAML, legacy and mcore spelling.
[[nodiscard]] Result<Request> read_mindformers(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});

}  // namespace nd::formats
