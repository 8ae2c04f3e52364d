// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/fields.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "formats/shell/value.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats::megatron {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;

std::string option(std::string_view name) {
  std::string out = "--" + std::string(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

/// Numbers of a word are read as the program reads them, quotes or not.
ConfigNode plain(const std::string& text) {
  ConfigNode out;
  out.kind = NodeKind::scalar;
  out.text = std::string(core::trim(text));
  return out;
}

}  // namespace

const ConfigNode* Fields::find(Names names) {
  const ConfigNode* out = nullptr;
  for (const auto name : names) {
    known_.emplace(name);
    const ConfigNode* const node = root_.find(name);
    if (out == nullptr && node != nullptr && !node->is_null()) out = node;
  }
  return out;
}

SourceRef Fields::place(const ConfigNode* node, std::string_view name) const {
  SourceRef out = node != nullptr ? node->where : root_.where;
  out.path = option(name);
  return out;
}

SourceRef Fields::where(Names names) const {
  for (const auto name : names)
    if (const auto* const node = root_.find(name); node != nullptr && !node->is_null()) return place(node, name);
  return place(nullptr, *names.begin());
}

void Fields::report(Diagnostic problem) {
  if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(std::move(problem));
}

void Fields::error(Names names, Errc code, std::string message, std::string hint) {
  report(make_diagnostic(code, where(names), std::move(message), std::move(hint)));
}
void Fields::warn(Names names, Errc code, std::string message, std::string hint) {
  notes.push_back({Severity::warning, code, where(names), std::move(message), std::move(hint)});
}
void Fields::note(Names names, std::string message) { notes.push_back({Severity::note, Errc::unsupported, where(names), std::move(message), {}}); }

std::optional<std::string> Fields::text(const ConfigNode& node, std::string_view name, std::string_view wanted) {
  if (!node.is_scalar()) {
    report(make_diagnostic(Errc::wrong_type, place(&node, name), "must be " + std::string(wanted) + ", is " + describe(node)));
    return std::nullopt;
  }
  const std::string open = shell::unset_names(node.text);
  if (open.empty()) return node.text;
  if (reported_.insert(std::string(name)).second)
    report(make_diagnostic(Errc::missing_field, place(&node, name), "depends on " + open + ", which the script does not set",
                                       open.find('(') == std::string::npos ? "set it in the script: " + open.substr(0, open.find(',')) + "=..."
                                                                           : "write the value in its place"));
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(Names names) {
  const ConfigNode* const node = find(names);
  if (node == nullptr) return std::nullopt;
  const auto name = *names.begin();
  const auto value = text(*node, name, "a whole number");
  if (!value) return std::nullopt;
  const auto number = as_integer(plain(*value));
  if (!number) {
    report(make_diagnostic(Errc::wrong_type, place(node, name), "must be a whole number, is '" + value->substr(0, 60) + "'"));
    return std::nullopt;
  }
  if (*number > kLargest || *number < -kLargest) {
    report(make_diagnostic(Errc::out_of_range, place(node, name), "is too large: " + std::to_string(*number)));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> Fields::positive(Names names) {
  const auto value = integer(names);
  if (!value || *value >= 1) return value;
  error(names, Errc::out_of_range, "must be at least 1, is " + std::to_string(*value));
  return std::nullopt;
}

std::optional<double> Fields::real(Names names) {
  const ConfigNode* const node = find(names);
  if (node == nullptr) return std::nullopt;
  const auto value = text(*node, *names.begin(), "a number");
  if (!value) return std::nullopt;
  const auto number = as_real(plain(*value));
  if (!number) error(names, Errc::wrong_type, "must be a number, is '" + value->substr(0, 60) + "'");
  return number;
}

std::optional<std::string> Fields::word(Names names) {
  const ConfigNode* const node = find(names);
  if (node == nullptr) return std::nullopt;
  return text(*node, *names.begin(), "one word");
}

std::optional<std::vector<std::string>> Fields::words(Names names) {
  const ConfigNode* const node = find(names);
  if (node == nullptr) return std::nullopt;
  std::vector<std::string> out;
  if (node->is_scalar()) {
    const auto value = text(*node, *names.begin(), "a list of words");
    if (!value) return std::nullopt;
    out.push_back(*value);
    return out;
  }
  for (const auto& item : node->items) {
    const auto value = text(item, *names.begin(), "a word");
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<std::int64_t>> Fields::integers(Names names) {
  const auto list = words(names);
  if (!list) return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::string word : *list) {
    // Lists come as 1,2,3 and as (1, 2, 3).
    std::erase_if(word, [](char c) { return c == '(' || c == ')' || c == '[' || c == ']' || c == '\'' || c == '"'; });
    for (std::size_t from = 0; from <= word.size();) {
      const std::size_t end = std::min(word.find(',', from), word.size());
      const auto part = core::trim(std::string_view(word).substr(from, end - from));
      from = end + 1;
      if (part.empty() && word.find(',') != std::string::npos) continue;
      const auto number = as_integer(plain(std::string(part)));
      if (!number || *number > kLargest || *number < -kLargest) {
        error(names, Errc::wrong_type, "must be whole numbers separated by commas, is '" + word.substr(0, 60) + "'");
        return std::nullopt;
      }
      out.push_back(*number);
    }
  }
  return out;
}

std::optional<bool> Fields::flag(Names names) {
  const ConfigNode* const node = find(names);
  if (node == nullptr) return std::nullopt;
  // "--bf16 $EXTRA_ARGS": a switch takes no value, so the reference is no part of it.
  if (node->is_scalar() && shell::all_open(node->text)) return true;
  const auto value = text(*node, *names.begin(), "a switch");
  if (!value) return std::nullopt;
  const auto flag = as_boolean(plain(*value));
  if (flag) return flag;
  const auto number = as_integer(plain(*value));
  if (number && (*number == 0 || *number == 1)) return *number == 1;
  error(names, Errc::wrong_type, "is a switch, but has the value '" + value->substr(0, 60) + "'");
  return std::nullopt;
}

}  // namespace nd::formats::megatron
