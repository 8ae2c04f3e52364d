// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/text.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"

namespace nd::formats {
namespace {

std::string joined(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

bool means(const ConfigNode& node, Recompute mode) {
  const std::string word = node.is_scalar() ? core::canonical_name(node.text) : std::string();
  switch (mode) {
    case Recompute::off: return word == "off" || word == "none" || as_boolean(node) == false;
    case Recompute::selective: return word == "selective";
    case Recompute::full: return word == "full";
    case Recompute::per_layer: break;  // no word of a trainer: layers are stated one by one
  }
  return false;
}

}  // namespace

std::string StrategyEditor::spelled(std::string_view section, Names names) const {
  for (const auto name : names)
    if (const std::string path = joined(section, name); editor_.find(path) != nullptr) return path;
  return joined(section, *names.begin());
}

const ConfigNode* StrategyEditor::stated(std::string_view section, Names names) const { return editor_.find(spelled(section, names)); }

void StrategyEditor::put(std::string_view section, Names names, WrittenValue value, const std::optional<WrittenValue>& assumed) {
  const std::string path = spelled(section, names);
  if (assumed && *assumed == value && editor_.find(path) == nullptr) return;
  editor_.set(path, std::move(value));
}

void StrategyEditor::put_recompute(std::string_view section, Names names, Recompute mode, std::string_view off_word) {
  const std::string path = spelled(section, names);
  const ConfigNode* const node = editor_.find(path);
  if (node == nullptr ? mode == Recompute::off : means(*node, mode)) return;
  editor_.set(path, mode == Recompute::off ? std::string(off_word) : std::string(to_text(mode)));
}

void StrategyEditor::put_offset(const std::string& path, const ResolvedStrategy& strategy, std::int64_t mtp) {
  auto offsets = strategy.layers_per_chunk;
  offsets.back().back() += mtp;
  const auto places = static_cast<std::int64_t>(offsets.size() * offsets.front().size());
  const std::int64_t base = (strategy.layers + mtp) / places;
  bool none = true;
  for (auto& chunk : offsets)
    for (auto& count : chunk) {
      count -= base;
      none = none && count == 0;
    }
  const ConfigNode* const node = editor_.find(path);
  if (none) {
    if (node != nullptr && as_integer(*node) != 0) editor_.set(path, std::int64_t{0});
    return;
  }
  if (offsets.size() == 1) editor_.set(path, offsets.front());
  else editor_.set(path, offsets);
}

Result<std::vector<ResolvedFile>> StrategyEditor::finish(const Original& original) {
  auto text = editor_.finish();
  if (!text) return text.error();
  return std::vector<ResolvedFile>{{suffix_of(original.file), *std::move(text)}};
}

Result<StrategyEditor> edit(const Original& original) {
  auto editor = ConfigEditor::open(original.text, original.file, syntax_of(original.file));
  if (!editor) return editor.error();
  return StrategyEditor(*std::move(editor));
}

}  // namespace nd::formats
