// SPDX-License-Identifier: Apache-2.0
#include "formats/write/value_text.hpp"

#include <cctype>

#include "core/text.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {

namespace {

std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || (c == '\\' && quote == '"')) out += quote == '"' ? '\\' : quote;
    out += c;
  }
  return out + quote;
}

/// Whether a YAML word needs no quotes to be read as a string.
bool is_plain_word(const std::string& text) {
  ConfigNode node;
  node.kind = NodeKind::scalar;
  node.text = text;
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !text.empty() && text.find_first_not_of(kSafe) == std::string::npos && text.front() != '-' && scalar_type(node) == ScalarType::string;
}

/// Spells one kind of value after the other.
struct Spelling {
  Syntax syntax;
  std::string_view replaced;

  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(bool value) const {
    const bool capital = syntax == Syntax::yaml && !replaced.empty() && std::isupper(static_cast<unsigned char>(replaced.front())) != 0;
    if (value) return capital ? "True" : "true";
    return capital ? "False" : "false";
  }
  std::string operator()(const std::string& value) const {
    const char old = replaced.empty() ? '\0' : replaced.front();
    if (syntax == Syntax::json) return quoted(value, '"');
    if (old == '"' || old == '\'') return quoted(value, old);
    if (syntax == Syntax::yaml && !replaced.empty() && is_plain_word(value)) return value;
    return quoted(value, '"');
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out;
    for (const auto& value : values) out += (out.empty() ? "" : ", ") + Spelling{syntax, {}}(value);
    return "[" + out + "]";
  }
};

template <class T>
bool same_list(const ConfigNode& node, const std::vector<T>& values);

bool same(const ConfigNode& node, std::int64_t value) { return as_integer(node) == value; }
bool same(const ConfigNode& node, bool value) { return as_boolean(node) == value; }
bool same(const ConfigNode& node, const std::string& value) {
  return node.is_scalar() && core::canonical_name(node.text) == core::canonical_name(value);
}
template <class T>
bool same(const ConfigNode& node, const std::vector<T>& values) {
  return same_list(node, values);
}
template <class T>
bool same_list(const ConfigNode& node, const std::vector<T>& values) {
  if (!node.is_sequence() || node.items.size() != values.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!same(node.items[i], values[i])) return false;
  return true;
}

}  // namespace

std::string value_text(const WrittenValue& value, Syntax syntax, std::string_view replaced) { return std::visit(Spelling{syntax, replaced}, value); }

std::string key_text(std::string_view key, Syntax syntax) {
  if (syntax == Syntax::json) return "\"" + std::string(key) + "\": ";
  return std::string(key) + (syntax == Syntax::toml ? " = " : ": ");
}

bool reads_as(const ConfigNode& node, const WrittenValue& value) {
  return std::visit([&node](const auto& one) { return same(node, one); }, value);
}

}  // namespace nd::formats
