// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "nd/diagnostic.hpp"

namespace nd::formats {

/// 1-based line and column; columns count characters (code points), not bytes.
struct Place {
  int line = 0;
  int column = 0;
};

/// Turns byte offsets into places. Offsets that do not go backwards cost only the text between them.
class PlaceCursor {
 public:
  /// `text` must outlive the cursor.
  explicit PlaceCursor(std::string_view text) : text_(text) {}
  /// Offsets beyond the end give the place after the last character.
  [[nodiscard]] Place at(std::size_t offset);

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  Place place_{1, 1};
};

/// The text without a leading UTF-8 byte order mark.
[[nodiscard]] std::string_view without_bom(std::string_view text);

/// What makes `text` no text: a NUL or another control character, UTF-16, invalid UTF-8, nothing but space. nullopt: it is text.
[[nodiscard]] std::optional<Diagnostic> text_problem(std::string_view text, const std::string& file);

}  // namespace nd::formats
