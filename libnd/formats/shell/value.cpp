// SPDX-License-Identifier: Apache-2.0
#include "formats/shell/value.hpp"

namespace nd::formats::shell {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Part [from, to) of a piece; of literal text the place moves along.
Piece part(const Piece& piece, std::size_t from, std::size_t to) {
  Piece out = piece;
  out.text = piece.text.substr(from, to - from);
  if (out.literal && !out.sites.empty()) out.sites.front() = {piece.sites.front().begin + from, piece.sites.front().begin + to};
  return out;
}

}  // namespace

std::string text_of(const Value& value) {
  std::string out;
  for (const auto& piece : value) out += piece.text;
  return out;
}

std::string unset_names(const std::string& text) {
  std::string out;
  for (std::size_t at = text.find(kUnset); at != std::string::npos;) {
    const std::size_t end = text.find(kUnset, at + 1);
    if (end == std::string::npos) break;
    out += (out.empty() ? "" : ", ") + text.substr(at + 1, end - at - 1);
    at = text.find(kUnset, end + 1);
  }
  return out;
}

bool all_open(const std::string& text) {
  return text.size() > 2 && text.front() == kUnset && text.find(kUnset, 1) == text.size() - 1;
}

std::string shown(const std::string& text) {
  std::string out;
  bool open = false;
  for (const char c : text) {
    if (c != kUnset) out += c;
    else if (open = !open; open) out += '$';
  }
  return out;
}

Value tail(const Value& value, std::size_t n) {
  Value out;
  for (const auto& piece : value) {
    if (n >= piece.text.size()) {
      n -= piece.text.size();
      continue;
    }
    out.push_back(part(piece, n, piece.text.size()));
    n = 0;
  }
  return out;
}

std::vector<Value> split(const Value& value) {
  std::vector<Value> fields;
  Value field;
  bool begun = false;
  const auto finish = [&] {
    if (begun) fields.push_back(std::move(field));
    field.clear();
    begun = false;
  };
  for (const auto& piece : value) {
    if (piece.quoted) {
      field.push_back(piece);
      begun = true;
      continue;
    }
    std::size_t from = 0;
    bool open = false;  // blanks inside the name of an undecided part do not split
    for (std::size_t i = 0; i <= piece.text.size(); ++i) {
      const bool end = i == piece.text.size();
      if (!end && piece.text[i] == kUnset) open = !open;
      if (!end && (open || !is_blank(piece.text[i]))) continue;
      if (i > from) {
        field.push_back(part(piece, from, i));
        begun = true;
      }
      if (!end) finish();
      from = i + 1;
    }
  }
  finish();
  return fields;
}

}  // namespace nd::formats::shell
