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
/// A TorchTitan job TOML: the model from its flavor table, the run.
[[nodiscard]] Result<Request> read_torchtitan(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// A search config: the run it names or states, and what may vary (Request::candidates).
[[nodiscard]] Result<Request> read_search_config(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// The same laid over a run that another file states.
[[nodiscard]] Result<Request> read_search_config_over(Request base, const ConfigNode& root, const DataStore& data, const ReadOptions& options);
/// A DeepSpeed JSON: the run without a model.
[[nodiscard]] Result<Request> read_deepspeed(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// An Accelerate YAML: the run without a model.
[[nodiscard]] Result<Request> read_accelerate(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// Training arguments of the Hugging Face Trainer (YAML or JSON); the model by `model_name_or_path` where it is a folder or a preset.
[[nodiscard]] Result<Request> read_hf_trainer(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// Megatron-LM and MindSpeed-LLM arguments: of a launch script, a list, a dump (megatron/document.hpp makes one mapping of each).
[[nodiscard]] Result<Request> read_megatron(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});
/// A MindSpeed JSON: degrees in `tmp`, one section per module.
[[nodiscard]] Result<Request> read_mindspeed(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options = {});

}  // namespace nd::formats
