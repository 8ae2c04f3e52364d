// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/text.hpp"
#include "nd/schedule.hpp"
#include "nd/search_space.hpp"
#include "space/dimensions.hpp"

namespace nd {

using space::dimension_table;
using space::row_of;

namespace {

std::vector<std::string> known_dimensions() {
  std::vector<std::string> out;
  for (const auto& row : dimension_table()) {
    out.emplace_back(row.info.acronym);
    if (!row.info.alias.empty()) out.emplace_back(row.info.alias);
  }
  return out;
}

bool is_word_dimension(const space::DimensionRow& row) { return row.words != nullptr; }

enum class Relation { equal, least, most, not_equal };
struct Condition {
  std::string_view name, operand;
  Relation relation{};
};

std::optional<Condition> split_condition(std::string_view text) {
  const auto at = text.find_first_of("=<>!");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at);
  const auto make = [&](Relation relation, std::size_t length) {
    return Condition{core::trim(text.substr(0, at)), core::trim(rest.substr(length)), relation};
  };
  if (rest.starts_with("<=")) return make(Relation::most, 2);
  if (rest.starts_with(">=")) return make(Relation::least, 2);
  if (rest.starts_with("!=")) return make(Relation::not_equal, 2);
  if (rest.starts_with("=")) return make(Relation::equal, 1);
  return std::nullopt;
}

Result<std::vector<std::int64_t>> parse_values(Dimension dimension, std::string_view text, const SourceRef& where) {
  std::vector<std::int64_t> values;
  std::vector<Diagnostic> problems;
  for (const auto& word : core::split(text, ',')) {
    const auto value = parse_value(dimension, core::trim(word), where);
    if (!value) {
      problems.insert(problems.end(), value.error().diagnostics.begin(), value.error().diagnostics.end());
    } else if (std::find(values.begin(), values.end(), *value) == values.end()) {
      values.push_back(*value);
    }
  }
  if (!problems.empty()) return Error(std::move(problems));
  return values;
}

std::string choice_text(const space::DimensionRow& row, const DimensionChoice& choice) {
  std::string out;
  const std::string name(row.info.name);
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : " ") + part; };
  if (!choice.values.empty()) {
    std::string list;
    for (const auto value : choice.values) list += (list.empty() ? "" : ",") + value_text(row.info.id, value);
    add(name + "=" + list);
  }
  if (choice.least != std::numeric_limits<std::int64_t>::min()) add(name + ">=" + value_text(row.info.id, choice.least));
  if (choice.most != std::numeric_limits<std::int64_t>::max()) add(name + "<=" + value_text(row.info.id, choice.most));
  for (const auto value : choice.excluded) add(name + "!=" + value_text(row.info.id, value));
  return out;
}

}  // namespace

std::vector<DimensionInfo> dimension_list() {
  std::vector<DimensionInfo> out;
  for (const auto& row : dimension_table()) out.push_back(row.info);
  return out;
}

DimensionInfo dimension_info(Dimension dimension) { return row_of(dimension).info; }

Result<Dimension> parse_dimension(std::string_view text, const SourceRef& where) {
  const std::string wanted = core::canonical_name(text);
  for (const auto& row : dimension_table())
    for (const auto name : {row.info.acronym, row.info.alias, row.info.name, row.info.field})
      if (!name.empty() && core::canonical_name(name) == wanted) return row.info.id;
  return make_error(Errc::out_of_range, where, "unknown dimension '" + std::string(text) + "'",
                    core::name_hint(text, known_dimensions()));
}

std::int64_t value_of(const ParallelConfig& config, Dimension dimension) { return row_of(dimension).get(config); }

std::string value_text(Dimension dimension, std::int64_t value) {
  if (const auto words = row_of(dimension).words) {
    const auto names = words();
    if (value >= 0 && static_cast<std::size_t>(value) < names.size()) return std::string(names[static_cast<std::size_t>(value)]);
  }
  return std::to_string(value);
}

Result<std::int64_t> parse_value(Dimension dimension, std::string_view text, const SourceRef& where) {
  const auto& row = row_of(dimension);
  const std::string wanted = core::canonical_name(text);
  const auto number = core::parse_integer(text);
  if (dimension == Dimension::schedule)
    if (const auto schedule = find_schedule(text)) return static_cast<std::int64_t>(*schedule);
  if (is_word_dimension(row)) {
    std::vector<std::string> words;
    for (const std::string_view name : row.words()) {
      const auto position = static_cast<std::int64_t>(words.size());
      words.emplace_back(name);
      if (wanted == core::canonical_name(name) || number == position) return position;
    }
    if (dimension == Dimension::sequence_parallel && (wanted == "true" || wanted == "false"))
      return std::int64_t{wanted == "true" ? 1 : 0};
    if (dimension == Dimension::recompute && wanted == "none") return std::int64_t{0};
    return make_error(Errc::out_of_range, where, "'" + std::string(text) + "' is no value of " + std::string(row.info.acronym),
                      core::name_hint(text, words));
  }
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number && !digits)
    return make_error(Errc::wrong_type, where, "'" + std::string(text) + "' is no whole number",
                      std::string(row.info.acronym) + " is a degree, e.g. " + std::string(row.info.name) + "=2,4");
  const std::int64_t least = dimension == Dimension::zero ? 0 : 1;
  const std::int64_t most = dimension == Dimension::zero ? 3 : std::numeric_limits<std::int32_t>::max();
  if (!number || *number < least || *number > most)
    return make_error(Errc::out_of_range, where,
                      std::string(row.info.acronym) + " must be " + std::to_string(least) + " .. " + std::to_string(most) + ", got " +
                          std::string(text));
  return *number;
}

bool DimensionChoice::admits(std::int64_t value) const {
  return value >= least && value <= most && std::find(excluded.begin(), excluded.end(), value) == excluded.end();
}

bool DimensionChoice::automatic() const { return *this == DimensionChoice{}; }

SearchSpace pin_dimensions(const RunSpec& stated, const ParallelConfig& fallback, const std::vector<Dimension>& searched) {
  const auto is_searched = [&searched](Dimension d) { return std::find(searched.begin(), searched.end(), d) != searched.end(); };
  SearchSpace space;
  for (const auto& row : dimension_table()) {
    const Dimension id = row.info.id;
    if (is_searched(id) || (id == Dimension::zero && is_searched(Dimension::optimizer_shard))) continue;
    // mb follows from the batch, dp and mbs whatever the source says; only an explicit condition fixes it.
    const auto value = id == Dimension::micro_batch_num ? std::nullopt : row.stated(stated);
    if (!value && row.derived) continue;
    auto& choice = space.of(id);
    choice.values = {value ? *value : row.get(fallback)};
    choice.pinned = true;
  }
  return space;
}

SearchSpace fixed_space(const ParallelConfig& config) {
  SearchSpace space;
  for (const auto& row : dimension_table()) space.of(row.info.id).values = {row.get(config)};
  return space;
}

Result<SearchSpace> with_setting(SearchSpace space, std::string_view text, const SourceRef& where) {
  const auto condition = split_condition(text);
  if (!condition)
    return make_error(Errc::syntax, where, "'" + std::string(text) + "' is no condition on a dimension", "write tp=2,4 or pp<=8 or cp!=16");
  const auto dimension = parse_dimension(condition->name, where);
  if (!dimension) return dimension.error();
  auto& choice = space.of(*dimension);
  if (condition->relation == Relation::equal && core::canonical_name(condition->operand) == "auto") {
    choice = DimensionChoice{};
    return space;
  }
  auto values = parse_values(*dimension, condition->operand, where);
  if (!values) return values.error();
  const bool bound = condition->relation == Relation::least || condition->relation == Relation::most;
  if (bound && is_word_dimension(row_of(*dimension)))
    return make_error(Errc::syntax, where, "the values of " + std::string(row_of(*dimension).info.acronym) + " have no order",
                      "name them: " + std::string(row_of(*dimension).info.name) + "=A,B, or !=A for all but one");
  if (bound && values->size() != 1)
    return make_error(Errc::syntax, where, "a bound takes one value, got '" + std::string(condition->operand) + "'");
  switch (condition->relation) {
    case Relation::equal: choice.values = *values; break;
    case Relation::least: choice.least = std::max(choice.least, values->front()); break;
    case Relation::most: choice.most = std::min(choice.most, values->front()); break;
    case Relation::not_equal: choice.excluded.insert(choice.excluded.end(), values->begin(), values->end()); break;
  }
  // A condition on a pinned dimension frees it: who bounds a value wants it varied.
  if (choice.pinned && condition->relation != Relation::equal) choice.values.clear();
  choice.pinned = false;
  return space;
}

std::string to_text(const SearchSpace& space) {
  std::string out;
  for (const auto& row : dimension_table()) {
    const std::string part = choice_text(row, space.of(row.info.id));
    if (!part.empty()) out += (out.empty() ? "" : " ") + part;
  }
  return out;
}

}  // namespace nd
