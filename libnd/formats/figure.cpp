// SPDX-License-Identifier: Apache-2.0
#include "formats/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {
namespace {

/// Fits are relative to a reference figure, so a share may exceed one a little.
constexpr double kLargestFraction = 1.5;

std::string join_path(std::string_view base, std::string_view key) {
  return base.empty() ? std::string(key) : std::string(base) + "." + std::string(key);
}

void report(std::vector<Diagnostic>& sink, Errc code, const SourceRef& where, std::string message, std::string hint = {}) {
  sink.push_back(make_diagnostic(code, where, std::move(message), std::move(hint)));
}

std::optional<FigureKind> parse_kind(std::string_view text) {
  for (const FigureKind kind : {FigureKind::measured, FigureKind::datasheet, FigureKind::assumed, FigureKind::fitted}) {
    if (text == to_text(kind)) return kind;
  }
  return std::nullopt;
}

/// kind, source and note, which figures and tables share.
std::optional<FigureSource> read_provenance(MapReader& reader, const Citations& citations) {
  FigureSource result;
  bool good = true;
  reader.require("kind", "every figure says how it is known");
  if (const auto text = reader.string("kind")) {
    if (const auto kind = parse_kind(*text)) {
      result.kind = *kind;
    } else {
      reader.error("kind", Errc::out_of_range, "unknown kind '" + *text + "'",
                   core::name_hint(*text, {"measured", "datasheet", "assumed", "fitted"}));
      good = false;
    }
  } else {
    good = false;
  }
  reader.require("source", "every figure names its source");
  const auto keys = reader.strings("source");
  if (!keys) good = false;
  if (keys && keys->empty()) {
    reader.error("source", Errc::missing_field, "the list of sources is empty", "name a key of 'sources'");
    good = false;
  }
  for (const std::string& key : keys.value_or(std::vector<std::string>{})) {
    const auto found = citations.find(key);
    if (found == citations.end()) {
      std::vector<std::string> known;
      for (const auto& entry : citations) known.push_back(entry.first);
      reader.error("source", Errc::unknown_key, "'" + key + "' is not a key of 'sources'", core::name_hint(key, known));
      good = false;
      continue;
    }
    if (!result.citation.empty()) result.citation += "; ";
    result.citation += found->second;
  }
  result.note = reader.string("note").value_or("");
  if (!good) return std::nullopt;
  return result;
}

std::optional<double> parse_seconds_per_byte(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto time = parse_seconds(core::trim(text.substr(0, slash)));
  const auto amount = parse_bytes("1 " + std::string(core::trim(text.substr(slash + 1))));
  if (!time || !amount || amount->value <= 0) return std::nullopt;
  return time->value / amount->value;
}

template <class Amount>
std::optional<double> raw(std::optional<Amount> amount) {
  if (!amount) return std::nullopt;
  return amount->value;
}

struct ValueRule {
  FieldType type;
  const char* expected;
};
constexpr std::array<ValueRule, 8> kValueRules{{
    {FieldType::rate, "a rate with unit, such as \"312 TFLOP/s\""},
    {FieldType::bandwidth, "a bandwidth with unit, such as \"50 GB/s\" or \"200 Gbit/s\""},
    {FieldType::bytes, "an amount with unit, such as \"64 GiB\""},
    {FieldType::seconds, "a time with unit, such as \"5 us\""},
    {FieldType::seconds_per_byte, "a time per amount with units, such as \"2.8 ms/GiB\""},
    {FieldType::number, "a number that is not negative"},
    {FieldType::count, "a whole number from 1 on"},
    {FieldType::fraction, "a number above 0 and up to 1.5"},
}};

std::optional<double> parse_value(const ConfigNode& node, FieldType type) {
  if (!node.is_scalar()) return std::nullopt;
  switch (type) {
    case FieldType::rate: return raw(parse_rate(node.text));
    case FieldType::bandwidth: return raw(parse_bandwidth(node.text));
    case FieldType::bytes: return raw(parse_bytes(node.text));
    case FieldType::seconds: return raw(parse_seconds(node.text));
    case FieldType::seconds_per_byte: return parse_seconds_per_byte(node.text);
    case FieldType::number: return as_real(node);
    case FieldType::count: {
      const auto value = as_integer(node);
      if (!value || *value < 1) return std::nullopt;
      return static_cast<double>(*value);
    }
    case FieldType::fraction: {
      const auto value = as_real(node);
      if (!value || *value <= 0 || *value > kLargestFraction) return std::nullopt;
      return value;
    }
    default: return std::nullopt;
  }
}

class DocumentReader {
 public:
  DocumentReader(std::span<const FieldRule> rules, Citations citations, std::vector<Diagnostic>& sink)
      : rules_(rules), citations_(std::move(citations)), sink_(sink) {}

  void walk(const ConfigNode& node, const std::string& pattern, const std::string& path) {
    if (const FieldRule* rule = leaf(pattern)) {
      read_leaf(node, *rule, path);
      return;
    }
    if (has_child(pattern, "#")) {
      walk_list(node, pattern, path);
      return;
    }
    if (!node.is_mapping()) {
      report(sink_, Errc::wrong_type, node.where, "must be a mapping");
      return;
    }
    for (const auto& [key, child] : node.members) {
      if (pattern.empty() && key == "sources") continue;  // read before, by read_citations
      const std::string own = join_path(pattern, key);
      const std::string any = join_path(pattern, "*");
      if (is_known(own)) {
        walk(child, own, join_path(path, key));
      } else if (is_known(any)) {
        walk(child, any, join_path(path, key));
      } else {
        report(sink_, Errc::unknown_key, child.where, "unknown key '" + key + "'", core::name_hint(key, children(pattern)));
      }
    }
    require(node, pattern);
  }

  [[nodiscard]] FieldMap take() { return std::move(result_); }

 private:
  [[nodiscard]] const FieldRule* leaf(std::string_view pattern) const {
    const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const FieldRule& r) { return r.pattern == pattern; });
    return found == rules_.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_known(std::string_view pattern) const {
    return std::any_of(rules_.begin(), rules_.end(), [&](const FieldRule& r) {
      return r.pattern == pattern || (r.pattern.size() > pattern.size() && r.pattern.starts_with(pattern) && r.pattern[pattern.size()] == '.');
    });
  }
  [[nodiscard]] bool has_child(std::string_view pattern, std::string_view component) const {
    return is_known(join_path(pattern, component));
  }
  [[nodiscard]] std::vector<std::string> children(std::string_view pattern) const {
    std::vector<std::string> names;
    const std::string prefix = pattern.empty() ? std::string() : std::string(pattern) + ".";
    for (const FieldRule& rule : rules_) {
      if (!rule.pattern.starts_with(prefix)) continue;
      const std::string_view rest = rule.pattern.substr(prefix.size());
      const std::string name(rest.substr(0, rest.find('.')));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }

  /// Required fields directly or deeper below `pattern`, as far as no "*" or "#" is passed.
  void require(const ConfigNode& node, std::string_view pattern) {
    const std::string prefix = pattern.empty() ? std::string() : std::string(pattern) + ".";
    for (const FieldRule& rule : rules_) {
      if (!rule.required || !rule.pattern.starts_with(prefix)) continue;
      const std::string_view rest = rule.pattern.substr(prefix.size());
      const auto dot = rest.find('.');
      const std::string_view first = rest.substr(0, dot);
      const ConfigNode* child = node.find(first);
      // A missing section is reported field by field; a section that is there reports its own.
      if (child != nullptr || rest.find_first_of("*#") != std::string_view::npos) continue;
      report(sink_, Errc::missing_field, node.where, "'" + std::string(rest) + "' is missing");
    }
  }

  void walk_list(const ConfigNode& node, const std::string& pattern, const std::string& path) {
    if (!node.is_sequence()) {
      report(sink_, Errc::wrong_type, node.where, "must be a list");
      return;
    }
    auto& names = result_.lists[path];
    for (const ConfigNode& item : node.items) {
      const ConfigNode* name = item.is_mapping() ? item.find("name") : nullptr;
      if (name == nullptr || !name->is_scalar() || name->text.empty()) {
        report(sink_, Errc::missing_field, item.where, "every element needs a 'name'");
        continue;
      }
      if (std::find(names.begin(), names.end(), name->text) != names.end()) {
        report(sink_, Errc::duplicate_key, name->where, "'" + name->text + "' is named twice");
        continue;
      }
      names.push_back(name->text);
      walk(item, join_path(pattern, "#"), join_path(path, name->text));
    }
  }

  void read_leaf(const ConfigNode& node, const FieldRule& rule, const std::string& path) {
    Field field;
    field.where = node.where;
    switch (rule.type) {
      case FieldType::text:
        if (!node.is_scalar() || core::trim(node.text).empty()) return report(sink_, Errc::wrong_type, node.where, "must be a text");
        field.text = node.text;
        break;
      case FieldType::texts:
        if (!read_texts(node, field)) return;
        break;
      case FieldType::integer:
      case FieldType::extent:
        if (!read_extent(node, rule.type, field)) return;
        break;
      case FieldType::table:
        if (!read_table(node, field)) return;
        break;
      default:
        if (!read_amount(node, rule.type, field)) return;
    }
    result_.fields.emplace(path, std::move(field));
  }

  bool read_texts(const ConfigNode& node, Field& field) {
    bool good = node.is_sequence();
    for (const ConfigNode& item : node.items) {
      good = good && item.is_scalar();
      field.texts.push_back(item.text);
    }
    if (!good) report(sink_, Errc::wrong_type, node.where, "must be a list of texts");
    return good;
  }

  bool read_extent(const ConfigNode& node, FieldType type, Field& field) {
    if (type == FieldType::extent && node.is_scalar() && node.text == "unbounded") return true;
    const auto value = node.is_scalar() ? as_integer(node) : std::nullopt;
    if (!value || *value < 1) {
      report(sink_, Errc::wrong_type, node.where,
             type == FieldType::extent ? "must be a whole number from 1 on, or unbounded" : "must be a whole number from 1 on");
      return false;
    }
    field.number = static_cast<double>(*value);
    return true;
  }

  bool read_amount(const ConfigNode& node, FieldType type, Field& field) {
    const auto figure = read_figure(node, citations_, sink_);
    if (!figure) return false;
    const auto value = parse_value(*figure->value, type);
    if (!value || !std::isfinite(*value) || *value < 0) {
      const auto rule = std::find_if(kValueRules.begin(), kValueRules.end(), [&](const ValueRule& r) { return r.type == type; });
      report(sink_, Errc::wrong_type, figure->value->where, "'" + figure->value->text + "' must be " + std::string(rule->expected));
      return false;
    }
    field.number = *value;
    field.text = figure->value->text;
    field.source = figure->source;
    return true;
  }

  bool read_table(const ConfigNode& node, Field& field) {
    if (!node.is_mapping()) {
      report(sink_, Errc::wrong_type, node.where, "must be a table {kind, source, columns, rows}");
      return false;
    }
    MapReader reader(node, sink_);
    field.source = read_provenance(reader, citations_);
    reader.require("columns", "a table names its columns");
    reader.require("rows", "a table has rows");
    const auto columns = reader.strings("columns");
    const ConfigNode* rows = reader.child("rows");
    reader.finish();
    if (rows == nullptr || !columns) return false;
    bool good = field.source.has_value();
    for (const ConfigNode& row : rows->items) {
      if (row.is_sequence() && row.items.size() == columns->size()) continue;
      report(sink_, Errc::wrong_type, row.where, "the row must have " + std::to_string(columns->size()) + " entries, one per column");
      good = false;
    }
    return good;
  }

  std::span<const FieldRule> rules_;
  Citations citations_;
  std::vector<Diagnostic>& sink_;
  FieldMap result_;
};

}  // namespace

const Field* FieldMap::find(std::string_view path) const {
  const auto found = fields.find(path);
  return found == fields.end() ? nullptr : &found->second;
}

double FieldMap::number(std::string_view path, double fallback) const {
  const Field* field = find(path);
  return field == nullptr ? fallback : field->number;
}

std::string FieldMap::text(std::string_view path) const {
  const Field* field = find(path);
  return field == nullptr ? std::string() : field->text;
}

Citations read_citations(const ConfigNode& root, std::vector<Diagnostic>& sink) {
  Citations result;
  const ConfigNode* sources = root.find("sources");
  if (sources == nullptr || !sources->is_mapping()) {
    report(sink, Errc::missing_field, root.where, "'sources' is missing: a mapping of key to {citation}");
    return result;
  }
  for (const auto& [key, node] : sources->members) {
    MapReader reader(node, sink);
    reader.require("citation", "a source says where to look");
    const auto citation = reader.string("citation");
    reader.ignore({"date"});
    reader.finish();
    result.emplace(key, citation.value_or(key));
  }
  return result;
}

std::optional<Figure> read_figure(const ConfigNode& node, const Citations& citations, std::vector<Diagnostic>& sink) {
  if (!node.is_mapping()) {
    report(sink, Errc::wrong_type, node.where, "must be a figure {value, kind, source}", "a bare value has no source");
    return std::nullopt;
  }
  MapReader reader(node, sink);
  reader.require("value", "a figure has a value");
  Figure figure;
  figure.value = reader.child("value");
  const auto source = read_provenance(reader, citations);
  reader.finish();
  if (figure.value == nullptr || !source) return std::nullopt;
  figure.source = *source;
  return figure;
}

FieldMap read_fields(const ConfigNode& root, std::span<const FieldRule> rules, std::vector<Diagnostic>& sink) {
  DocumentReader reader(rules, read_citations(root, sink), sink);
  reader.walk(root, "", "");
  return reader.take();
}

void check_schema(const ConfigNode& root, std::string_view expected, std::vector<Diagnostic>& sink) {
  const ConfigNode* schema = root.find("schema");
  if (schema == nullptr) {
    report(sink, Errc::missing_field, root.where, "'schema' is missing", "expected schema: " + std::string(expected));
  } else if (schema->text != expected) {
    report(sink, Errc::unsupported, schema->where, "schema '" + schema->text + "' is not readable here",
           "expected " + std::string(expected));
  }
}

bool has_error(const std::vector<Diagnostic>& sink) {
  return std::any_of(sink.begin(), sink.end(), [](const Diagnostic& d) { return d.severity == Severity::error; });
}

}  // namespace nd::formats
