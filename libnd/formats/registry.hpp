// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "formats/readers/reader.hpp"
#include "formats/tree/node.hpp"

namespace nd::formats {

/// How sure the keys of a document make us that it is of a format; 0: no sign of it.
enum Likeness : int { kNoSign = 0, kMaybe = 30, kLikely = 60, kCertain = 90 };

/// One row of the format table. A new format is one row here and one file in readers/. A row without a reader is a format that
/// is recognised, so that a wrong input is named, but not read.
struct Format {
  std::string_view id, title, suffixes;
  Likeness (*sniff)(const ConfigNode& root);
  ReadFunction read;
};

[[nodiscard]] const std::vector<Format>& formats();
/// The row the document looks most like, nullptr when it looks like none.
[[nodiscard]] const Format* recognise(const ConfigNode& root);

}  // namespace nd::formats
