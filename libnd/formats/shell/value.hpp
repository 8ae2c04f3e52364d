// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace nd::formats::shell {

/// Bytes [begin, end) of the script.
struct Span {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// A stretch of text with where it came from. `sites` are the places whose text it stands for, the innermost first: the
/// literal itself when the characters are the script's own, then every reference it passed through. Empty: it was computed
/// at no single place.
struct Piece {
  std::string text;
  bool literal = false;  ///< sites[0] holds exactly this text, character by character
  bool quoted = false;   ///< not split at blanks
  std::vector<Span> sites;
};

/// A string. What the script does not decide appears as "\x01NAME\x01": no text has that character.
using Value = std::vector<Piece>;
inline constexpr char kUnset = '\x01';

[[nodiscard]] std::string text_of(const Value& value);
/// Names of what is not decided, in order, separated by ", "; empty when everything is.
[[nodiscard]] std::string unset_names(const std::string& text);
/// Whether the text is one open part and nothing else.
[[nodiscard]] bool all_open(const std::string& text);
/// The text with its open parts spelled "$NAME".
[[nodiscard]] std::string shown(const std::string& text);
/// The value from its n-th character on.
[[nodiscard]] Value tail(const Value& value, std::size_t n);
/// Fields after splitting unquoted pieces at blanks.
[[nodiscard]] std::vector<Value> split(const Value& value);

}  // namespace nd::formats::shell
