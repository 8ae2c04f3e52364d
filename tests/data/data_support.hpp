// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/result.hpp"

namespace nd::test {

/// A shipped file with pieces of its text exchanged: {old, new}. An old piece that is not there fails the test by an exception.
inline std::string edited(const std::string& path, const std::vector<std::pair<std::string_view, std::string_view>>& edits) {
  std::string text = formats::read_text_file(path).value();
  for (const auto& [old_text, new_text] : edits) {
    const auto at = text.find(old_text);
    if (at == std::string::npos) throw InternalError("not in " + path + ": " + std::string(old_text));
    text.replace(at, old_text.size(), new_text);
  }
  return text;
}

/// All diagnostics as one text; empty when there is a value.
template <class T>
std::string problems(const Result<T>& result) {
  std::string out;
  if (result.has_value()) return out;
  for (const Diagnostic& one : result.error().diagnostics) out += to_text(one) + "\n";
  return out;
}

}  // namespace nd::test
