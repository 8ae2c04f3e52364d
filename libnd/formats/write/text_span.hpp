// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/node.hpp"
#include "formats/write/config_editor.hpp"

namespace nd::formats {

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0, end = 0;
};

/// Where the nodes of a parsed document stand in its text. Thread-compatible; text and tree must outlive it.
class TextSpans {
 public:
  TextSpans(std::string_view text, Syntax syntax);

  /// Byte offset of a 1-based line and column in characters, as the parsers count them.
  [[nodiscard]] std::size_t offset(int line, int column) const;
  [[nodiscard]] std::size_t begin_of(const ConfigNode& node) const { return offset(node.where.line, node.where.column); }
  [[nodiscard]] std::size_t key_of(const ConfigNode& member) const { return offset(member.key_line, member.key_column); }
  /// The value with its quotes or brackets, without anchors and tags. Block collections reach to the end of their last value.
  /// `flow`: the node stands inside brackets (YAML).
  [[nodiscard]] Span value_of(const ConfigNode& node, bool flow) const;
  /// A null has no text of its own: the place behind the colon of its key, with a written null.
  [[nodiscard]] Span null_of(const ConfigNode& node, bool flow) const;
  /// Behind the colon (or equals sign) of the key that starts at `at`.
  [[nodiscard]] std::size_t behind_separator(std::size_t at) const;
  [[nodiscard]] bool is_alias(const ConfigNode& node) const;
  /// Name of the anchor in front of the value; empty when there is none.
  [[nodiscard]] std::string_view anchor_of(const ConfigNode& node) const;
  /// Whether a collection is written in brackets.
  [[nodiscard]] bool is_flow(const ConfigNode& node) const;
  /// Members that stand in the mapping itself, in the order of the text: no merged ones, no sub-tables of TOML headers elsewhere.
  [[nodiscard]] std::vector<const ConfigNode*> own_members(const ConfigNode& mapping) const;

  [[nodiscard]] std::size_t line_begin(std::size_t at) const;
  /// At the line end (before its \r or \n), or the end of the text.
  [[nodiscard]] std::size_t line_end(std::size_t at) const;
  /// Behind the line end.
  [[nodiscard]] std::size_t next_line(std::size_t at) const;
  [[nodiscard]] std::string_view text() const { return text_; }
  /// "\n" or "\r\n", as the text has it.
  [[nodiscard]] std::string_view newline() const { return newline_; }

 private:
  [[nodiscard]] std::size_t skip_properties(std::size_t at) const;
  [[nodiscard]] std::size_t end_of_quoted(std::size_t at) const;
  [[nodiscard]] std::size_t end_of_brackets(std::size_t at) const;
  [[nodiscard]] std::size_t end_of_plain(std::size_t at, bool flow) const;
  [[nodiscard]] std::size_t end_of_continued(std::size_t begin, std::size_t end, int key_column) const;

  std::string_view text_;
  Syntax syntax_;
  std::vector<std::size_t> lines_;  ///< offsets of line starts
  std::string_view newline_ = "\n";
};

}  // namespace nd::formats
