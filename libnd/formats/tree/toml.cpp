// SPDX-License-Identifier: Apache-2.0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "formats/tree/builder.hpp"
#include "formats/tree/node.hpp"
#include "formats/tree/number_spelling.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

Place place_of(const toml::source_position& position) { return {static_cast<int>(position.line), static_cast<int>(position.column)}; }

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

}  // namespace

Result<ConfigNode> parse_toml(std::string_view text, const std::string& file, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    return make_error(Errc::out_of_range, {file, 0, 0, {}}, "larger than " + std::to_string(limits.max_bytes) + " bytes");
  if (auto problem = text_problem(text, file)) return Error(*std::move(problem));
  TreeBuilder builder(file, limits);
  try {
    const toml::table table = toml::parse(without_bom(text), file);
    add_table(builder, table, {1, 1});
    return builder.finish();
  } catch (const Refused& refused) {
    return Error(refused.why);
  } catch (const toml::parse_error& error) {
    const Place place = place_of(error.source().begin);
    const std::string reason(error.description());
    const bool twice = reason.find("redefine") != std::string::npos || reason.find("duplicate") != std::string::npos;
    return make_error(twice ? Errc::duplicate_key : Errc::syntax, {file, place.line, place.column, {}}, "not a TOML document: " + reason);
  }
}

}  // namespace nd::formats
