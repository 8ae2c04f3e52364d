// SPDX-License-Identifier: Apache-2.0
#include "formats/write/text_span.hpp"

#include <algorithm>

#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_break(char c) { return c == '\n' || c == '\r'; }

}  // namespace

TextSpans::TextSpans(std::string_view text, Syntax syntax) : text_(text), syntax_(syntax) {
  lines_.push_back(text.size() - without_bom(text).size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_break(text[i])) continue;
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      if (lines_.size() == 1) newline_ = "\r\n";
      ++i;
    }
    lines_.push_back(i + 1);
  }
}

std::size_t TextSpans::offset(int line, int column) const {
  if (line < 1) return 0;
  const auto index = std::min(static_cast<std::size_t>(line) - 1, lines_.size() - 1);
  std::size_t at = lines_[index];
  for (int c = 1; c < column && at < text_.size(); ++c) {
    ++at;
    while (at < text_.size() && is_continuation(text_[at])) ++at;
  }
  return std::min(at, text_.size());
}

std::size_t TextSpans::skip_properties(std::size_t at) const {
  while (syntax_ == Syntax::yaml && at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {
    at = std::min(text_.find_first_of(" \t\r\n,]}", at), text_.size());
    at = std::min(text_.find_first_not_of(" \t\r\n", at), text_.size());
  }
  return at;
}

std::size_t TextSpans::end_of_quoted(std::size_t at) const {
  const char quote = text_[at];
  const std::string triple(3, quote);
  if (syntax_ == Syntax::toml && text_.substr(at, 3) == triple) {
    const auto closed = text_.find(triple, at + 3);
    return closed == std::string_view::npos ? text_.size() : closed + 3;
  }
  for (++at; at < text_.size(); ++at) {
    if (text_[at] == '\\' && quote == '"') {
      ++at;
    } else if (text_[at] == quote) {
      const bool doubled = syntax_ == Syntax::yaml && quote == '\'' && at + 1 < text_.size() && text_[at + 1] == quote;
      if (!doubled) return at + 1;
      ++at;
    }
  }
  return text_.size();
}

std::size_t TextSpans::end_of_brackets(std::size_t at) const {
  int depth = 0;
  while (at < text_.size()) {
    const char c = text_[at];
    if (c == '"' || c == '\'') {
      // A quote inside a plain YAML word ("don't") opens nothing.
      const char before = at == 0 ? ' ' : text_[at - 1];
      if (syntax_ != Syntax::yaml || std::string_view(" \t\r\n[{,:").find(before) != std::string_view::npos) {
        at = end_of_quoted(at);
        continue;
      }
    }
    if (c == '#' && syntax_ != Syntax::json) {
      at = line_end(at);
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) return at + 1;
    ++at;
  }
  return at;
}

std::size_t TextSpans::end_of_plain(std::size_t at, bool flow) const {
  const std::size_t begin = at;
  for (; at < text_.size() && !is_break(text_[at]); ++at) {
    const char c = text_[at];
    if (c == '#' && (at == begin || is_blank(text_[at - 1]) || syntax_ == Syntax::toml)) break;
    if ((flow || syntax_ != Syntax::yaml) && (c == ',' || c == ']' || c == '}')) break;
  }
  while (at > begin && is_blank(text_[at - 1])) --at;
  return at;
}

std::size_t TextSpans::end_of_continued(std::size_t begin, std::size_t end, int key_column) const {
  // Block scalars (| and >) and plain words go on over the lines that are indented deeper than their key.
  const bool block = text_[begin] == '|' || text_[begin] == '>';
  for (std::size_t line = next_line(end); line < text_.size(); line = next_line(line)) {
    const std::size_t last = line_end(line);
    const std::size_t first = std::min(text_.find_first_not_of(" \t", line), text_.size());
    if (first >= last) continue;  // blank
    const bool deeper = first - line >= static_cast<std::size_t>(key_column);
    if (!deeper || (!block && text_[first] == '#')) break;
    end = end_of_plain(first, false);
    if (block) end = last;
    if (next_line(line) == line) break;
  }
  return end;
}

bool TextSpans::is_alias(const ConfigNode& node) const {
  const std::size_t at = begin_of(node);
  return syntax_ == Syntax::yaml && at < text_.size() && text_[at] == '*' && !(node.is_scalar() && node.text.starts_with('*'));
}

std::string_view TextSpans::anchor_of(const ConfigNode& node) const {
  std::size_t at = begin_of(node);
  while (syntax_ == Syntax::yaml && at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}", at), text_.size());
    if (text_[at] == '&') return text_.substr(at + 1, end - at - 1);
    at = std::min(text_.find_first_not_of(" \t\r\n", end), text_.size());
  }
  return {};
}

bool TextSpans::is_flow(const ConfigNode& node) const {
  if (syntax_ == Syntax::json) return true;
  const std::size_t at = skip_properties(begin_of(node));
  if (at >= text_.size()) return false;
  if (syntax_ == Syntax::toml && node.is_mapping()) return text_[at] == '{';
  return text_[at] == (node.is_mapping() ? '{' : '[');
}

std::vector<const ConfigNode*> TextSpans::own_members(const ConfigNode& mapping) const {
  std::vector<const ConfigNode*> out;
  const std::size_t begin = mapping.where.path.empty() ? 0 : begin_of(mapping);
  for (const auto& [key, value] : mapping.members) {
    if (syntax_ == Syntax::yaml && key_of(value) < begin) continue;  // merged from an earlier mapping
    if (syntax_ == Syntax::toml && value.is_mapping() && !is_flow(value)) continue;
    out.push_back(&value);
  }
  std::sort(out.begin(), out.end(), [this](const ConfigNode* a, const ConfigNode* b) { return key_of(*a) < key_of(*b); });
  return out;
}

std::size_t TextSpans::behind_separator(std::size_t at) const {
  if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) at = end_of_quoted(at);
  const char separator = syntax_ == Syntax::toml ? '=' : ':';
  return std::min(text_.find(separator, at), text_.size() - 1) + 1;
}

Span TextSpans::null_of(const ConfigNode& node, bool flow) const {
  const std::size_t behind = behind_separator(begin_of(node));
  std::size_t begin = behind;
  while (begin < text_.size() && is_blank(text_[begin])) ++begin;
  const std::size_t end = begin < text_.size() ? end_of_plain(begin, flow) : begin;
  if (end == begin) return {behind, behind};
  return {begin, end};
}

Span TextSpans::value_of(const ConfigNode& node, bool flow) const {
  if (node.is_null()) return null_of(node, flow);
  const std::size_t begin = skip_properties(begin_of(node));
  if (begin >= text_.size()) return {begin, begin};
  if (is_alias(node)) return {begin, std::min(text_.find_first_of(" \t\r\n,]}", begin), text_.size())};
  if (node.is_scalar()) {
    const bool quoted = text_[begin] == '"' || text_[begin] == '\'';
    if (quoted) return {begin, end_of_quoted(begin)};
    const std::size_t end = end_of_plain(begin, flow);
    return {begin, syntax_ == Syntax::yaml && !flow && node.key_column > 0 ? end_of_continued(begin, end, node.key_column) : end};
  }
  if (is_flow(node)) return {begin, end_of_brackets(begin)};
  std::size_t end = begin;
  for (const auto& item : node.items) end = std::max(end, item.is_null() ? line_end(begin_of(item)) : value_of(item, false).end);
  for (const ConfigNode* const member : own_members(node)) end = std::max(end, value_of(*member, false).end);
  return {begin, std::max(end, line_end(begin))};
}

std::size_t TextSpans::line_begin(std::size_t at) const {
  const auto after = std::upper_bound(lines_.begin(), lines_.end(), at);
  return after == lines_.begin() ? 0 : *(after - 1);
}

std::size_t TextSpans::line_end(std::size_t at) const { return std::min(text_.find_first_of("\r\n", at), text_.size()); }

std::size_t TextSpans::next_line(std::size_t at) const {
  const auto after = std::upper_bound(lines_.begin(), lines_.end(), at);
  return after == lines_.end() ? text_.size() : *after;
}

}  // namespace nd::formats
