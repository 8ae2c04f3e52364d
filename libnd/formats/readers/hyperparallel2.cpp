// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/hyperparallel2.hpp"

#include <algorithm>
#include <array>

#include "formats/tree/scalar.hpp"

namespace nd::formats {
namespace {

constexpr std::array<std::string_view, 20> kSections{"model",     "model_init_dtype", "training",  "train",        "dataset",    "data",  "activation_checkpoint",
                                                     "optimizer", "accelerator",      "fsdp_config", "context",    "dataloader", "lr_scheduler", "checkpoint",
                                                     "debug",     "compile",          "low_precision", "plan_overrides", "mixed_precision", "profiler"};
constexpr std::array<std::string_view, 6> kShardingKeys{"dp_shard_size", "edp_shard_size", "reshard_after_forward", "reshard_after_backward", "mix_precision", "comm_fusion"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Collects the sections of one file after the other.
class Merger {
 public:
  explicit Merger(std::vector<Diagnostic>& notes) : notes_(notes) { out_.kind = NodeKind::mapping; }

  /// `home` is the section that keys without one belong to.
  void add(const ConfigNode& file, std::string_view home) {
    if (out_.where.file.empty()) out_.where = file.where;
    for (const auto& [key, value] : file.members) {
      if (contains(kSections, key)) {
        put(out_, key, value);
        continue;
      }
      const bool sharding = home == "accelerator" && contains(kShardingKeys, key);
      ConfigNode section;
      section.kind = NodeKind::mapping;
      section.where = file.where;
      section.where.path = sharding ? "fsdp_config" : std::string(home);
      section.key_line = value.key_line;
      section.key_column = value.key_column;
      section.members.emplace_back(key, value);
      put(out_, section.where.path, section);
    }
  }

  ConfigNode take() { return std::move(out_); }

 private:
  void put(ConfigNode& parent, const std::string& key, const ConfigNode& value) {
    const auto found = std::find_if(parent.members.begin(), parent.members.end(), [&key](const auto& member) { return member.first == key; });
    if (found == parent.members.end()) {
      parent.members.emplace_back(key, value);
    } else if (found->second.is_mapping() && value.is_mapping()) {
      for (const auto& [inner, part] : value.members) put(found->second, inner, part);
    } else {
      Diagnostic note = make_diagnostic(Errc::conflict, value.where, "is stated in " + found->second.where.file + " as well; this file wins");
      note.severity = Severity::warning;
      notes_.push_back(std::move(note));
      found->second = value;
    }
  }

  std::vector<Diagnostic>& notes_;
  ConfigNode out_;
};

}  // namespace

Result<ConfigNode> merge_three_files(const ThreeFiles& files, std::vector<Diagnostic>& notes) {
  std::vector<Diagnostic> problems;
  for (const ConfigNode* const file : {&files.model, &files.train, &files.accelerate})
    if (!file->is_mapping())
      problems.push_back(make_diagnostic(Errc::wrong_type, file->where, "the top level must be a mapping, is " + describe(*file)));
  if (!problems.empty()) return Error(std::move(problems));
  Merger merger(notes);
  merger.add(files.model, "model");
  merger.add(files.train, "training");
  merger.add(files.accelerate, "accelerator");
  return merger.take();
}

}  // namespace nd::formats
