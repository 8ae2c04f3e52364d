// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// What is written into a document: a count, a switch, a word, words, counts per stage, or such a list per chunk.
using WrittenValue = std::variant<std::int64_t, bool, std::string, std::vector<std::int64_t>, std::vector<std::vector<std::int64_t>>,
                                  std::vector<std::vector<std::string>>>;

enum class Syntax { yaml, json, toml };
/// By the suffix of the file; YAML when it says nothing.
[[nodiscard]] Syntax syntax_of(std::string_view file);

/// Changes single values of a document and leaves every other character of it as it is: comments, order, quotes, line ends.
/// Changes are collected and made together by finish(), which reads the result again: exactly the asked-for values differ, or
/// there is an error. Thread-compatible.
class ConfigEditor {
 public:
  /// Errors: those of the parser.
  [[nodiscard]] static Result<ConfigEditor> open(std::string text, const std::string& file, Syntax syntax);

  [[nodiscard]] const ConfigNode& root() const { return root_; }
  /// The value at a dotted path, nullptr when absent or null.
  [[nodiscard]] const ConfigNode* find(std::string_view path) const;
  /// The value at `path` (dotted, the last key too) will be `value`. What already reads so is left alone; missing sections and keys are made.
  void set(std::string_view path, WrittenValue value);
  /// The key at `path` goes, with its value. Nothing happens when it is not there.
  void remove(std::string_view path);
  /// The lines of a key of the root become comments under a line that says why (YAML).
  void comment_out(std::string_view key, std::string_view why);
  /// Errors: unsupported, when a value cannot be changed alone (it is shared by an anchor, or written in a form that is not edited).
  [[nodiscard]] Result<std::string> finish();

 private:
  ConfigEditor(std::string text, std::string file, Syntax syntax, ConfigNode root);

  std::string text_, file_;
  Syntax syntax_;
  ConfigNode root_;
  std::vector<std::pair<std::string, WrittenValue>> sets_;
  std::vector<std::string> removals_;
  std::vector<std::pair<std::string, std::string>> comments_;
};

}  // namespace nd::formats
