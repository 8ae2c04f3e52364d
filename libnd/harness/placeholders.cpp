// SPDX-License-Identifier: Apache-2.0
#include "harness/placeholders.hpp"

#include <cstddef>

namespace nd::harness {

namespace {

constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

}  // namespace

std::string fill_in(std::string_view text, const Values& values, std::set<std::string>* unknown) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    if (open == std::string_view::npos) break;
    out += text.substr(at, open - at);
    const std::size_t end = text.find_first_not_of(kNameLetters, open + 1);
    if (end == std::string_view::npos || end == open + 1 || text[end] != '}') {
      out += '{';
      at = open + 1;
      continue;
    }
    const auto name = text.substr(open + 1, end - open - 1);
    const auto known = values.find(name);
    if (known != values.end()) out += known->second;
    else out += text.substr(open, end + 1 - open);
    if (known == values.end() && unknown != nullptr) unknown->emplace(name);
    at = end + 1;
  }
  out += text.substr(at);
  return out;
}

std::set<std::string> placeholders_of(std::string_view text) {
  std::set<std::string> out;
  (void)fill_in(text, {}, &out);
  return out;
}

}  // namespace nd::harness
