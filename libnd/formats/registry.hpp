// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "formats/readers/reader.hpp"
#include "formats/tree/node.hpp"
#include "formats/write/writer.hpp"

namespace nd::formats {

/// How sure the keys of a document make us that it is of a format; 0: no sign of it.
enum Likeness : int { kNoSign = 0, kMaybe = 30, kLikely = 60, kCertain = 90 };

/// One row of the format table. A new format is one row here and one file in readers/. A row without a reader is a format that
/// is recognised, so that a wrong input is named, but not read.
struct Format {
  std::string_view id, title, suffixes;
  Likeness (*sniff)(const ConfigNode& root);
  ReadFunction read;
  WriteFunction write = nullptr;         ///< puts a strategy into a document; nullptr: the format states none
  std::string_view extra_suffixes = "";  ///< of the files `write` makes besides the document itself, separated by spaces
  std::string_view aliases = "";         ///< further names for -f, separated by spaces
};

[[nodiscard]] const std::vector<Format>& formats();
/// The row the document looks most like, nullptr when it looks like none.
[[nodiscard]] const Format* recognise(const ConfigNode& root);
/// How a document is to be read.
struct ReadAs {
  std::string_view format;  ///< id; empty = guessed
  ReadOptions options;
};
/// Reads a document that is in memory; `path` says its suffix and where files named inside are.
[[nodiscard]] Result<Request> read_text(std::string_view text, const std::string& path, const DataStore& data, const ReadAs& as);
/// Reads an input of several documents that are in memory: the three-file form, a bare model with its trainer's files.
[[nodiscard]] Result<Request> read_documents(const Original& original, const DataStore& data, const ReadOptions& options);

}  // namespace nd::formats
