// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

// The library states what its parser expects as assertions, which some malformed texts break: an abort in debug builds,
// undefined behaviour in release builds. Here they throw instead, in every build.
namespace {
struct BrokenAssertion : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void broken_assertion(const char* condition) { throw BrokenAssertion(condition); }
}  // namespace
#undef NDEBUG
#define TOML_ASSERT(condition)                       \
  do {                                               \
    if (!(condition)) broken_assertion(#condition); \
  } while (false)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "formats/tree/builder.hpp"
#include "formats/tree/node.hpp"
#include "formats/tree/number_spelling.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

Place place_of(const toml::source_position& position) { return {static_cast<int>(position.line), static_cast<int>(position.column)}; }

/// Offset after the string that starts at `at` (basic or literal, one line or several); the end when it is not closed.
std::size_t after_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool several = text.substr(at, 3) == triple;
  at += several ? 3 : 1;
  for (; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (several ? text.substr(at, 3) == triple : text[at] == quote || text[at] == '\n') {
      return at + (several ? 3 : 1);
    }
  }
  return text.size();
}

/// Where the text nests deeper than `limit`, by brackets or by the dots of a key. The library recurses once per level, also
/// where its own limit does not look (dotted keys), so this is found out before.
std::optional<std::size_t> too_deep(std::string_view text, int limit) {
  int brackets = 0, dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = after_string(text, at);
      continue;
    }
    if (c == '#') at = std::min(text.find('\n', at), text.size() - 1);
    if (c == '.') ++dots;
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    if (brackets > limit || dots > limit) return at;
    if (std::string_view("#\n=,[]{}").find(c) != std::string_view::npos) dots = 0;
    ++at;
  }
  return std::nullopt;
}

template <class T>
std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

void add(TreeBuilder& builder, const toml::node& node);

void add_table(TreeBuilder& builder, const toml::table& table, Place place) {
  builder.begin(NodeKind::mapping, place);
  // The library orders keys by name; the document's order is what a person expects back.
  struct Member {
    const toml::key* key;
    const toml::node* value;
  };
  std::vector<Member> members;
  for (auto&& [key, value] : table) members.push_back({&key, &value});
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    const auto x = a.key->source().begin, y = b.key->source().begin;
    return x.line != y.line ? x.line < y.line : x.column < y.column;
  });
  for (const auto& member : members) {
    builder.key(std::string(member.key->str()), place_of(member.key->source().begin));
    add(builder, *member.value);
  }
  builder.end();
}

void add(TreeBuilder& builder, const toml::node& node) {
  const Place place = place_of(node.source().begin);
  if (const auto* table = node.as_table()) return add_table(builder, *table, place);
  if (const auto* array = node.as_array()) {
    builder.begin(NodeKind::sequence, place);
    for (const auto& item : *array) add(builder, item);
    return builder.end();
  }
  if (const auto* text = node.as_string()) return builder.scalar(text->get(), true, place);
  if (const auto* integer = node.as_integer()) return builder.scalar(std::to_string(integer->get()), false, place);
  if (const auto* real = node.as_floating_point()) return builder.scalar(typed_real(real->get()), false, place);
  if (const auto* boolean = node.as_boolean()) return builder.scalar(boolean->get() ? "true" : "false", false, place);
  if (const auto* date = node.as_date()) return builder.scalar(text_of(date->get()), true, place);
  if (const auto* time = node.as_time()) return builder.scalar(text_of(time->get()), true, place);
  if (const auto* both = node.as_date_time()) return builder.scalar(text_of(both->get()), true, place);
  builder.refuse(Errc::unsupported, place, "a value of an unknown type");
}

bool breaks_assertion(std::string_view text) {
  try {
    (void)toml::parse(text);
  } catch (const BrokenAssertion&) {
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
  return false;
}

/// The broken assertion does not say where: the shortest beginning of the text that breaks it does.
Place place_of_broken_assertion(std::string_view text) {
  std::size_t good = 0, bad = text.size();
  while (good + 1 < bad) {
    const std::size_t middle = good + (bad - good) / 2;
    (breaks_assertion(text.substr(0, middle)) ? bad : good) = middle;
  }
  return PlaceCursor(text).at(bad - 1);
}

}  // namespace

Result<ConfigNode> parse_toml(std::string_view text, const std::string& file, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    return make_error(Errc::out_of_range, {file, 0, 0, {}}, "larger than " + std::to_string(limits.max_bytes) + " bytes");
  if (auto problem = text_problem(text, file)) return Error(*std::move(problem));
  text = without_bom(text);
  TreeBuilder builder(file, limits);
  try {
    if (const auto at = too_deep(text, limits.max_depth))
      builder.refuse(Errc::out_of_range, PlaceCursor(text).at(*at), "nested deeper than " + std::to_string(limits.max_depth) + " levels");
    const toml::table table = toml::parse(text, file);
    add_table(builder, table, {1, 1});
    return builder.finish();
  } catch (const Refused& refused) {
    return Error(refused.why);
  } catch (const BrokenAssertion&) {
    const Place place = place_of_broken_assertion(text);
    return make_error(Errc::syntax, {file, place.line, place.column, {}}, "not a TOML document: unexpected text");
  } catch (const toml::parse_error& error) {
    const Place place = place_of(error.source().begin);
    const std::string reason(error.description());
    const bool twice = reason.find("redefine") != std::string::npos || reason.find("duplicate") != std::string::npos;
    return make_error(twice ? Errc::duplicate_key : Errc::syntax, {file, place.line, place.column, {}}, "not a TOML document: " + reason);
  }
}

}  // namespace nd::formats
