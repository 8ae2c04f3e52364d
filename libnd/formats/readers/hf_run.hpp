// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/readers/section.hpp"
#include "nd/formats.hpp"

namespace nd::formats {

/// Gathers one run from what the Hugging Face stack spreads over files: Trainer arguments, an Accelerate YAML, a DeepSpeed JSON.
/// Call the readers in this order, then finish(). A statement that contradicts an earlier one is an error. Thread-compatible.
class HfRunReader {
 public:
  /// All must outlive the reader.
  HfRunReader(const ReadOptions& options, Findings& findings) : options_(options), findings_(findings) {}

  /// `path` is the file's own: what it names is relative to its folder.
  void trainer(const ConfigNode& root, const std::string& path);
  void accelerate(const ConfigNode& root, const std::string& path);
  void deepspeed(const ConfigNode& root);
  /// By its keys: one of the three.
  void any(const ConfigNode& root, const std::string& path);
  /// Low-rank adapters that were read, counted on this model. Without a model's widths they are refused. Before finish().
  void adapters_of(const ModelSpec& model);
  [[nodiscard]] RunSpec finish();

 private:
  enum class Engine { plain, fsdp, deepspeed, megatron };
  using Count = std::optional<std::int64_t>;

  void engine(Engine engine, const SourceRef& where);
  void sharding_word(const std::string& word, const SourceRef& where);
  void zero(ZeroLevel level, const SourceRef& where);
  void set(Count& field, const Count& value, const SourceRef& where, const char* what);
  [[nodiscard]] Count count_or_auto(MapReader& map, std::string_view key);
  void precision(const std::string& word, const SourceRef& where);
  void optimizer(const std::string& name, const SourceRef& where);
  void recompute(Recompute mode, const SourceRef& where);
  void fsdp_config(Section& section);
  void deepspeed_plugin(Section& section, const std::string& path);
  void megatron_plugin(Section& section);
  void parallelism_config(Section& section);
  void zero_section(Section& section);
  void deepspeed_file(const std::string& named, const std::string& path, const SourceRef& where);
  void not_priced(const SourceRef& where, const std::string& what);
  void tuning(Section& args);
  void adapter_targets(MapReader& map);
  void batches(std::int64_t dp);
  void widths();
  [[nodiscard]] std::int64_t inner() const { return run_.tp.value_or(1) * run_.pp.value_or(1) * run_.cp.value_or(1); }

  const ReadOptions& options_;
  Findings& findings_;
  RunSpec run_;
  Engine engine_ = Engine::plain;
  Count machines_, shard_, replicas_, micro_, accumulation_, total_;
  SourceRef micro_where_, accumulation_where_, total_where_, mixed_where_;
  std::optional<Dtype> mixed_, loaded_;  ///< autocast type; type the weights are loaded in
  std::int64_t adapter_rank_ = 0;     ///< 0: no adapters
  std::string adapter_targets_;       ///< words of adapter_elements()
  SourceRef adapter_where_;
  bool mixed_stated_ = false, mixed_open_ = false, trainer_seen_ = false;
};

}  // namespace nd::formats
