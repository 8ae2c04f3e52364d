// SPDX-License-Identifier: Apache-2.0
#include "formats/tree/map_reader.hpp"

#include "core/text.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {

namespace {

constexpr std::int64_t kLargestCount = std::int64_t{1} << 40;

/// One scalar type: how it is read and what messages call it.
template <class T>
struct Kind {
  std::optional<T> (*read)(const ConfigNode&);
  const char* name;
  const char* plural;
};
constexpr Kind<std::int64_t> kInteger{as_integer, "an integer", "integers"};
constexpr Kind<double> kReal{as_real, "a number", "numbers"};
constexpr Kind<bool> kBoolean{as_boolean, "true or false", "booleans"};
constexpr Kind<std::string> kString{as_string, "a string", "strings"};

template <class T>
std::optional<T> read_one(const ConfigNode* node, const Kind<T>& kind, std::vector<Diagnostic>& sink) {
  if (node == nullptr) return std::nullopt;
  auto value = kind.read(*node);
  if (value) return value;
  const bool unquoted = node->is_scalar() && std::string_view(kind.name) == kString.name;
  sink.push_back(make_diagnostic(Errc::wrong_type, node->where, std::string("must be ") + kind.name + ", is " + describe(*node),
                                 unquoted ? "quote it" : ""));
  return std::nullopt;
}

template <class T>
std::optional<std::vector<T>> read_list(const ConfigNode* node, const Kind<T>& kind, std::vector<Diagnostic>& sink) {
  if (node == nullptr) return std::nullopt;
  if (!node->is_sequence()) {
    sink.push_back(make_diagnostic(Errc::wrong_type, node->where, std::string("must be a list of ") + kind.plural + ", is " + describe(*node)));
    return std::nullopt;
  }
  std::vector<T> out;
  for (const auto& item : node->items)
    if (auto value = read_one(&item, kind, sink)) out.push_back(*std::move(value));
  if (out.size() != node->items.size()) return std::nullopt;
  return out;
}

}  // namespace

MapReader::MapReader(const ConfigNode& node, std::vector<Diagnostic>& sink) : node_(node), sink_(sink) {
  if (!node.is_mapping()) {
    const char* const message = node.where.path.empty() ? "the top level must be a mapping, is " : "must be a mapping, is ";
    sink_.push_back(make_diagnostic(Errc::wrong_type, node.where, message + describe(node)));
  }
}

bool MapReader::has(std::string_view key) const {
  const ConfigNode* const node = node_.find(key);
  return node != nullptr && !node->is_null();
}

const ConfigNode* MapReader::child(std::string_view key) {
  known_.emplace(key);
  const ConfigNode* const node = node_.find(key);
  return node == nullptr || node->is_null() ? nullptr : node;
}

std::optional<std::int64_t> MapReader::integer(std::string_view key) { return read_one(child(key), kInteger, sink_); }

std::optional<std::int64_t> MapReader::positive(std::string_view key) {
  const auto value = integer(key);
  if (!value) return std::nullopt;
  if (*value >= 1 && *value <= kLargestCount) return value;
  error(key, Errc::out_of_range, (*value < 1 ? "must be at least 1, is " : "is too large: ") + std::to_string(*value));
  return std::nullopt;
}

std::optional<double> MapReader::real(std::string_view key) { return read_one(child(key), kReal, sink_); }
std::optional<bool> MapReader::boolean(std::string_view key) { return read_one(child(key), kBoolean, sink_); }
std::optional<std::string> MapReader::string(std::string_view key) { return read_one(child(key), kString, sink_); }
std::optional<std::vector<std::int64_t>> MapReader::integers(std::string_view key) { return read_list(child(key), kInteger, sink_); }
std::optional<std::vector<std::string>> MapReader::strings(std::string_view key) { return read_list(child(key), kString, sink_); }

void MapReader::require(std::string_view key, std::string_view what_for) {
  known_.emplace(key);
  if (has(key) || !node_.is_mapping()) return;
  std::string message = "'" + std::string(key) + "' is required";
  if (!what_for.empty()) message += ": " + std::string(what_for);
  sink_.push_back(make_diagnostic(Errc::missing_field, where(key), std::move(message)));
}

void MapReader::ignore(std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) known_.emplace(key);
}

void MapReader::ignore_rest() {
  for (const auto& member : node_.members) known_.insert(member.first);
}

void MapReader::finish() {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [key, value] : node_.members) {
    if (known_.count(key) != 0) continue;
    constexpr std::size_t kShown = 60;
    sink_.push_back(make_diagnostic(Errc::unknown_key, value.key_where(), "unknown key '" + key.substr(0, kShown) + "'", core::name_hint(key, known)));
  }
}

SourceRef MapReader::where(std::string_view key) const {
  if (const ConfigNode* const node = node_.find(key)) return node->where;
  SourceRef out = node_.where;
  out.path = out.path.empty() ? std::string(key) : out.path + "." + std::string(key);
  return out;
}

void MapReader::error(std::string_view key, Errc code, std::string message, std::string hint) {
  sink_.push_back(make_diagnostic(code, where(key), std::move(message), std::move(hint)));
}

}  // namespace nd::formats
