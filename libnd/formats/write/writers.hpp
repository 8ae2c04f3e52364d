// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "formats/write/config_editor.hpp"
#include "formats/write/writer.hpp"

namespace nd::formats {

/// Writers of configuration files (WriteFunction): each edits the fields of the strategy in its own format.
[[nodiscard]] Result<std::vector<ResolvedFile>> write_mindformers(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_hyper_v2(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_torchtitan(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_deepspeed(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_accelerate(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_hf_trainer(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_hyperparallel2(const Original& original, const ResolvedStrategy& strategy);
/// The companions of a bare model: its own file states no strategy and is not written.
[[nodiscard]] Result<std::vector<ResolvedFile>> write_trainer_files(const Original& original, const ResolvedStrategy& strategy);
[[nodiscard]] Result<std::vector<ResolvedFile>> write_search_config(const Original& original, const ResolvedStrategy& strategy);

/// Edits of one document that several writers make alike. Thread-compatible.
class StrategyEditor {
 public:
  using Names = std::initializer_list<std::string_view>;

  explicit StrategyEditor(ConfigEditor editor) : editor_(std::move(editor)) {}
  [[nodiscard]] ConfigEditor& editor() { return editor_; }

  /// Path of the spelling of a key that the document has; of the first one where it has none.
  [[nodiscard]] std::string spelled(std::string_view section, Names names) const;
  [[nodiscard]] const ConfigNode* stated(std::string_view section, Names names) const;
  /// Sets a key; one that is not there and would say what is read without it (`assumed`) is not added.
  void put(std::string_view section, Names names, WrittenValue value, const std::optional<WrittenValue>& assumed = std::nullopt);
  /// Sets a recompute word; what means the same already stays ("none", a bare off).
  void put_recompute(std::string_view section, Names names, Recompute mode, std::string_view off_word);
  /// Layer offsets of an even split, per stage or [chunk][stage]: what is not even must be said, what is need not be.
  void put_offset(const std::string& path, const ResolvedStrategy& strategy, std::int64_t mtp);
  /// The file in the suffix of the original.
  [[nodiscard]] Result<std::vector<ResolvedFile>> finish(const Original& original);

 private:
  ConfigEditor editor_;
};

/// The editor of an original's text.
[[nodiscard]] Result<StrategyEditor> edit(const Original& original);

}  // namespace nd::formats
