// SPDX-License-Identifier: Apache-2.0
#include "formats/registry.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/text.hpp"
#include "formats/megatron/document.hpp"
#include "formats/megatron/writer.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"
#include "nd/formats.hpp"

namespace nd::formats {

namespace {

bool has(const ConfigNode& root, std::string_view key) { return root.find(key) != nullptr; }

/// root.first.second is there.
bool has(const ConfigNode& root, std::string_view first, std::string_view second) {
  const ConfigNode* const section = root.find(first);
  return section != nullptr && section->find(second) != nullptr;
}

template <std::size_t N>
std::size_t count(const ConfigNode& root, const std::array<std::string_view, N>& keys) {
  return static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), [&root](std::string_view key) { return has(root, key); }));
}

// What tells the formats apart: the keys only one of them has at these places (docs/formats/README.md).

Likeness sniff_hf(const ConfigNode& root) {
  if (has(root, "tensor_model_parallel_size") || has(root, "micro_batch_size") || has(root, "parallel_config")) return kNoSign;
  constexpr std::array<std::string_view, 8> kShape{"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                                                   "n_embd",      "n_layer",           "d_model",             "text_config"};
  const std::size_t shape = count(root, kShape);
  if (has(root, "model_type") || has(root, "architectures")) return shape > 0 ? kCertain : kMaybe;
  return shape > 1 ? kLikely : shape > 0 ? kMaybe : kNoSign;
}

Likeness sniff_hyper_v2(const ConfigNode& root) {
  if (has(root, "parallelism") || has(root, "cluster") || has(root, "train_yaml") || has(root, "distributed_type")) return kNoSign;
  constexpr std::array<std::string_view, 3> kSections{"training", "accelerator", "fsdp_config"};
  if (has(root, "model", "flavor")) return kNoSign;
  if (has(root, "model", "pretrained_model_name_or_path") || has(root, "train", "accelerator") || has(root, "model", "config_overrides")) return kCertain;
  const std::size_t sections = count(root, kSections);
  if (sections > 1 || (sections > 0 && has(root, "model"))) return kCertain;
  return sections > 0 || (has(root, "train") && has(root, "model")) ? kLikely : kNoSign;
}

Likeness sniff_mindformers(const ConfigNode& root) {
  if (has(root, "parallel_config") && (has(root, "trainer", "model_name") || has(root, "model", "model_config"))) return kCertain;
  constexpr std::array<std::string_view, 5> kSections{"parallel_config", "recompute_config", "runner_config", "runner_wrapper", "moe_config"};
  const std::size_t sections = count(root, kSections) + (has(root, "model", "model_config") ? std::size_t{1} : std::size_t{0});
  return sections > 1 ? kLikely : sections > 0 ? kMaybe : kNoSign;
}

Likeness sniff_search(const ConfigNode& root) {
  if (has(root, "train_yaml")) return kCertain;
  return has(root, "parallelism") && has(root, "cluster") ? kCertain : kNoSign;
}

Likeness sniff_mindspeed(const ConfigNode& root) {
  const ConfigNode* const tmp = root.find("tmp");
  return tmp != nullptr && tmp->is_mapping() ? kCertain : kNoSign;
}

Likeness sniff_megatron(const ConfigNode& root) {
  if (has(root, "tmp") || has(root, "model_type") || has(root, "architectures")) return kNoSign;
  if (has(root, "MODEL_ARGS") || has(root, "model_parallel")) return kCertain;
  constexpr std::array<std::string_view, 4> kShape{"num_layers", "hidden_size", "num_attention_heads", "seq_length"};
  constexpr std::array<std::string_view, 5> kRun{"tensor_model_parallel_size", "pipeline_model_parallel_size", "micro_batch_size", "global_batch_size", "swiglu"};
  const std::size_t shape = count(root, kShape), run = count(root, kRun);
  return run > 0 && shape > 1 ? kCertain : run > 1 ? kLikely : kNoSign;
}

Likeness sniff_accelerate(const ConfigNode& root) {
  if (has(root, "distributed_type")) return kCertain;
  return has(root, "compute_environment") ? kLikely : kNoSign;
}

Likeness sniff_deepspeed(const ConfigNode& root) {
  if (has(root, "zero_optimization") || has(root, "train_micro_batch_size_per_gpu")) return kCertain;
  return has(root, "train_batch_size") && (has(root, "fp16") || has(root, "bf16") || has(root, "optimizer")) ? kLikely : kNoSign;
}

Likeness sniff_hf_trainer(const ConfigNode& root) {
  if (has(root, "per_device_train_batch_size")) return kCertain;
  return has(root, "model_name_or_path") && has(root, "learning_rate") ? kLikely : kNoSign;
}

/// The three-file form has no look of its own: its model file alone is a train.yaml in part.
Likeness sniff_nothing(const ConfigNode&) { return kNoSign; }

Result<Request> read_alone(const ConfigNode& root, const std::string&, const DataStore&, const ReadOptions&) {
  return make_error(Errc::missing_field, root.where, "the three-file form takes a model, a train and an accelerate file",
                    "-y MODEL --train-yaml TRAIN --accelerate-yaml ACCELERATE");
}

Likeness sniff_torchtitan(const ConfigNode& root) {
  if (has(root, "model", "flavor")) return kCertain;
  return has(root, "parallelism", "data_parallel_shard_degree") || has(root, "training", "local_batch_size") ? kLikely : kNoSign;
}

SourceRef at_option(std::string path) { return {"", 0, 0, std::move(path)}; }

std::vector<std::string> readable_ids() {
  std::vector<std::string> out;
  for (const auto& format : formats())
    if (format.read != nullptr) out.emplace_back(format.id);
  return out;
}

std::string named(const Format& format) { return std::string(format.title) + " (" + std::string(format.id) + ")"; }

Error not_read(const Format& format, const SourceRef& where) {
  return make_error(Errc::unsupported, where, "looks like a " + named(format) + ", which is not read",
                    core::name_hint("", readable_ids()));
}

bool is_named(const Format& format, std::string_view id) {
  if (format.id == id) return true;
  const auto names = core::split(format.aliases, ' ');
  return std::find(names.begin(), names.end(), id) != names.end();
}

/// The row to read with, or why there is none.
struct Choice {
  const Format* format = nullptr;
  Error error;
};

Choice choose(const ConfigNode& root, std::string_view wanted) {
  const Format* const seen = recognise(root);
  if (wanted.empty()) {
    if (seen == nullptr)
      return {nullptr, make_error(Errc::unsupported, root.where, "the format cannot be told from the content",
                                  "name it with -f; " + core::name_hint("", readable_ids()))};
    if (seen->read == nullptr) return {nullptr, not_read(*seen, root.where)};
    return {seen, {}};
  }
  const std::string id = core::canonical_name(wanted);
  for (const auto& format : formats()) {
    if (!is_named(format, id)) continue;
    const Likeness likeness = format.sniff(root);
    if (seen != nullptr && seen != &format && (likeness == kNoSign || (likeness <= kMaybe && seen->sniff(root) == kCertain)))
      return {nullptr, make_error(Errc::conflict, root.where, "is read as " + named(format) + " but looks like a " + named(*seen),
                                  "-f " + std::string(seen->id) + ", or another file")};
    if (format.read == nullptr) return {nullptr, not_read(format, root.where)};
    return {&format, {}};
  }
  return {nullptr, make_error(Errc::out_of_range, at_option("-f"), "unknown format '" + std::string(wanted.substr(0, 60)) + "'",
                              core::name_hint(wanted, readable_ids()))};
}

Result<Request> read_preset(const std::string& name, std::string_view wanted, const DataStore& data) {
  auto model = data.model(name);
  if (!model) {
    const auto names = data.model_names();
    return make_error(Errc::io, at_option(name), "no such file or folder, and no model preset of that name",
                      names ? core::name_hint(name, *names) : "");
  }
  if (!wanted.empty() && core::canonical_name(wanted) != "hf")
    return make_error(Errc::conflict, at_option(name), "is a model preset, not a file of format '" + std::string(wanted.substr(0, 60)) + "'");
  Request out;
  out.format = "hf";
  out.file = name;
  out.model = *std::move(model);
  return out;
}

/// Names are words; what has a separator or a known suffix was meant as a file.
bool may_be_preset(const std::string& path) {
  if (path.empty() || path.find('/') != std::string::npos) return false;
  const std::string suffix = std::filesystem::path(path).extension().string();
  constexpr std::array<std::string_view, 6> kFile{".yaml", ".yml", ".json", ".toml", ".sh", ".args"};
  for (const auto one : kFile)
    if (suffix == one) return false;
  return true;
}

Result<Request> read_parsed(const Result<Document>& document, const std::string& path, const ReadAs& asked, const DataStore& data) {
  if (!document) return document.error();
  const ConfigNode* const root = &document->root;
  if (!root->is_mapping()) return make_error(Errc::wrong_type, root->where, "the top level must be a mapping, is " + describe(*root));
  Choice choice = choose(*root, asked.format);
  if (choice.format == nullptr) return std::move(choice.error);
  auto request = choice.format->read(*root, path, data, asked.options);
  if (!request) return request;
  // A search config passes on what it lies over.
  if (request->file.empty()) {
    request->format = std::string(choice.format->id);
    request->file = path;
  }
  request->notes.insert(request->notes.begin(), document->notes.begin(), document->notes.end());
  if (asked.format.empty()) {
    Diagnostic note = make_diagnostic(Errc::unsupported, {path, 0, 0, {}}, "read as " + named(*choice.format) + ", guessed from its content");
    note.severity = Severity::note;
    request->notes.push_back(std::move(note));
  }
  return request;
}

Result<Request> read_file(const std::string& path, const ReadAs& asked, const DataStore& data) {
  const auto text = read_text_file(path);
  if (!text) return text.error();
  return read_parsed(read_any(*text, path), path, asked, data);
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> kRows{
      {"mindformers", "MindFormers YAML", ".yaml .yml", sniff_mindformers, read_mindformers, write_mindformers},
      {"hyper_v2", "HyperParallel train.yaml", ".yaml .yml", sniff_hyper_v2, read_hyper_v2, write_hyper_v2},
      {"hf", "Hugging Face config.json", ".json", sniff_hf, read_hf},
      {"search", "search config", ".yaml .yml", sniff_search, read_search_config, write_search_config},
      {"hyperparallel2", "HyperParallel in three files", ".yaml .yml", sniff_nothing, read_alone, write_hyperparallel2},
      {"torchtitan", "TorchTitan TOML", ".toml", sniff_torchtitan, read_torchtitan, write_torchtitan, "", "hyperparallel"},
      {"hf_trainer", "training arguments of the Hugging Face Trainer", ".yaml .yml .json", sniff_hf_trainer, read_hf_trainer, write_hf_trainer},
      {"accelerate", "Accelerate YAML", ".yaml .yml", sniff_accelerate, read_accelerate, write_accelerate},
      {"deepspeed", "DeepSpeed JSON", ".json", sniff_deepspeed, read_deepspeed, write_deepspeed},
      {"mindspeed", "MindSpeed JSON", ".json", sniff_mindspeed, read_mindspeed, write_mindspeed},
      {"megatron", "Megatron or MindSpeed-LLM argument list", ".sh .args .json .yaml", sniff_megatron, read_megatron, write_megatron, ".args"},
  };
  return kRows;
}

Result<Request> read_text(std::string_view text, const std::string& path, const DataStore& data, const ReadAs& as) {
  return read_parsed(read_any(text, path), path, as, data);
}

const Format* recognise(const ConfigNode& root) {
  const Format* best = nullptr;
  Likeness most = kNoSign;
  for (const auto& format : formats()) {
    const Likeness likeness = format.sniff(root);
    if (likeness > most) {
      most = likeness;
      best = &format;
    }
  }
  return best;
}

}  // namespace nd::formats

namespace nd {

std::vector<FormatInfo> format_list() {
  std::vector<FormatInfo> out;
  for (const auto& format : formats::formats())
    if (format.read != nullptr) out.push_back({format.id, format.title, format.suffixes, format.aliases});
  return out;
}

Result<Request> read_request(const std::string& path, std::string_view format, const DataStore& data, const ReadOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const std::string config = (fs::path(path) / "config.json").string();
    if (!fs::exists(config, error)) return make_error(Errc::io, {path, 0, 0, {}}, "is a folder without a config.json");
    return formats::read_file(config, {format, options}, data);
  }
  if (!fs::exists(path, error) && std::count(path.begin(), path.end(), ':') == 1 && path.find('/') == std::string::npos && path.find(".toml") == std::string::npos)
    return make_error(Errc::unsupported, {path, 0, 0, {}}, "names a Python function of a module (module:config), which cannot be read without running it",
                      "give the job's TOML, or the model's config.json with the degrees as conditions (--set)");
  if (!fs::exists(path, error) && formats::may_be_preset(path)) return formats::read_preset(path, format, data);
  return formats::read_file(path, {format, options}, data);
}

}  // namespace nd
