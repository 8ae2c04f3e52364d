// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nd/result.hpp"

namespace nd::formats {

enum class NodeKind { null, scalar, sequence, mapping };

/// One node of a parsed document, whatever its format. Scalars keep their text; scalar.hpp types them by one table.
/// Aliases are expanded (within the size limit). Duplicate keys never get here: the parsers refuse them.
struct ConfigNode {
  // Out of line: inline ones make clang 14 instantiate pair<string, ConfigNode> while it is still incomplete.
  ConfigNode();
  ConfigNode(const ConfigNode&);
  ConfigNode(ConfigNode&&) noexcept;
  ConfigNode& operator=(const ConfigNode&);
  ConfigNode& operator=(ConfigNode&&) noexcept;
  ~ConfigNode();

  NodeKind kind = NodeKind::null;
  std::string text;      ///< of a scalar, as written (JSON/TOML: canonical spelling)
  bool quoted = false;   ///< a quoted scalar is a string whatever it looks like
  SourceRef where;       ///< file, line, column (in characters); path = dotted path from the root, "a.b[2].c"
  int key_line = 0, key_column = 0;  ///< of the key when the node is a member of a mapping
  std::vector<ConfigNode> items;                             ///< of a sequence
  std::vector<std::pair<std::string, ConfigNode>> members;   ///< of a mapping, in document order

  [[nodiscard]] bool is_mapping() const { return kind == NodeKind::mapping; }
  [[nodiscard]] bool is_sequence() const { return kind == NodeKind::sequence; }
  [[nodiscard]] bool is_scalar() const { return kind == NodeKind::scalar; }
  [[nodiscard]] bool is_null() const { return kind == NodeKind::null; }
  /// The member of a mapping, or nullptr.
  [[nodiscard]] const ConfigNode* find(std::string_view key) const;
  /// `where` moved to the key of this member; `where` itself when there is no key.
  [[nodiscard]] SourceRef key_where() const;
};

/// Limits that keep hostile documents from eating the machine.
struct ParseLimits {
  std::size_t max_bytes = 64U << 20U;  ///< of the file; all texts, keys and paths of the tree together may take four times that
  std::size_t max_nodes = 500'000;
  int max_depth = 128;
};

/// Parse one document. `file` names it in positions. Errors: syntax, duplicate_key, out_of_range (limits).
[[nodiscard]] Result<ConfigNode> parse_yaml(std::string_view text, const std::string& file, const ParseLimits& limits = {});
[[nodiscard]] Result<ConfigNode> parse_json(std::string_view text, const std::string& file, const ParseLimits& limits = {});
[[nodiscard]] Result<ConfigNode> parse_toml(std::string_view text, const std::string& file, const ParseLimits& limits = {});

/// Reads a regular file. Errors: io (missing, unreadable, a directory), syntax (binary, not UTF-8, empty), out_of_range (too large).
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, const ParseLimits& limits = {});
/// Parses by suffix of the path (.yaml .yml .json .toml), else by content.
[[nodiscard]] Result<ConfigNode> parse_document(std::string_view text, const std::string& path, const ParseLimits& limits = {});
/// Reads a file and parses it the same way.
[[nodiscard]] Result<ConfigNode> read_document(const std::string& path, const ParseLimits& limits = {});

}  // namespace nd::formats
