// SPDX-License-Identifier: Apache-2.0
#include "report/validation_rules.hpp"

#include <algorithm>
#include <cstdint>

#include "core/text.hpp"
#include "formats/csv.hpp"
#include "formats/model_fields.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"
#include "report/validation_mapping.hpp"

namespace nd::report {
namespace {

using formats::ConfigNode;
using formats::MapReader;
using Sink = std::vector<Diagnostic>;

std::vector<Condition> read_conditions(const ConfigNode* node, Sink& sink) {
  std::vector<Condition> out;
  if (node == nullptr) return out;
  MapReader reader(*node, sink);
  for (const auto& [column, value] : node->members) {
    Condition condition;
    condition.column = column;
    if (!column_text(MeasuredRow{}, column)) {
      reader.error(column, Errc::unknown_key, "no column of a measured table");
      continue;
    }
    if (value.is_sequence()) {
      condition.patterns = reader.strings(column).value_or(std::vector<std::string>{});
    } else if (auto text = reader.string(column)) {
      condition.patterns.push_back(*text);
    }
    out.push_back(std::move(condition));
  }
  reader.ignore_rest();
  return out;
}

void read_settings(const ConfigNode* node, SourceRule& rule, Sink& sink) {
  if (node == nullptr) return;
  MapReader reader(*node, sink);
  for (const auto& [key, value] : node->members) {
    const auto& known = known_settings();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      reader.error(key, Errc::unknown_key, "no setting of a measured row", core::name_hint(key, known));
      continue;
    }
    rule.set.emplace_back(key, value.text);
  }
  reader.ignore_rest();
}

SourceRule read_source_rule(const ConfigNode& node, Sink& sink) {
  SourceRule rule;
  MapReader reader(node, sink);
  rule.name = reader.string("name").value_or("");
  rule.match = read_row_match(reader, sink);
  rule.framework = reader.string("framework").value_or("");
  rule.version = reader.string("version").value_or("");
  rule.features = reader.strings("features").value_or(std::vector<std::string>{});
  rule.skip = reader.string("skip").value_or("");
  read_settings(reader.child("set"), rule, sink);
  reader.ignore({"because"});
  reader.finish();
  return rule;
}

ModelSpec read_model_fields(const ConfigNode* node, Sink& sink) {
  ModelSpec spec;
  if (node == nullptr) return spec;
  MapReader reader(*node, sink);
  for (const auto& [field, value] : node->members) {
    if (!formats::read_model_field(reader, field, field, spec))
      reader.error(field, Errc::unknown_key, "no field of a model", core::name_hint(field, formats::model_field_names()));
  }
  reader.ignore_rest();
  return spec;
}

ModelRule read_model_rule(const ConfigNode& node, Sink& sink) {
  ModelRule rule;
  MapReader reader(node, sink);
  rule.match = read_row_match(reader, sink);
  rule.model_type = reader.string("model_type").value_or("");
  rule.fill = read_model_fields(reader.child("fill"), sink);
  rule.ignore = reader.strings("ignore").value_or(std::vector<std::string>{});
  rule.priceless = reader.string("cannot_price").value_or("");
  reader.ignore({"because"});
  reader.finish();
  return rule;
}

/// The sequence `key` of a document whose `schema` is `schema`.
const ConfigNode* rule_list(const ConfigNode& root, const std::string& key, const std::string& schema, Sink& sink) {
  MapReader reader(root, sink);
  if (reader.string("schema").value_or("") != schema) reader.error("schema", Errc::unsupported, "must be " + schema);
  reader.require(key, "the rules");
  const ConfigNode* list = reader.child(key);
  if (list != nullptr && !list->is_sequence()) {
    reader.error(key, Errc::wrong_type, "must be a list");
    list = nullptr;
  }
  reader.finish();
  return list;
}

void append(Sink& sink, const Error& error) { sink.insert(sink.end(), error.diagnostics.begin(), error.diagnostics.end()); }

/// "devices=16 pp=8": column=value pairs, all of which must match.
void read_config_pairs(const std::string& text, const SourceRef& where, RowMatch& match, Sink& sink) {
  for (const std::string& pair : core::split(text, ' ')) {
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    if (equals == std::string::npos || !column_text(MeasuredRow{}, pair.substr(0, equals))) {
      sink.push_back(make_diagnostic(Errc::syntax, where, "'" + pair + "' is no column=value"));
      continue;
    }
    match.when.push_back({pair.substr(0, equals), {pair.substr(equals + 1)}});
  }
}

void read_quarantine(const std::string& path, RuleBook& book, Sink& sink) {
  const auto table = formats::read_csv(path);
  if (!table) return append(sink, table.error());
  const std::vector<std::string> columns{"source", "model", "config", "notes", "figure", "reason"};
  if (table->header != columns) {
    sink.push_back(make_diagnostic(Errc::syntax, SourceRef{path, 1, 1, {}}, "the columns must be source,model,config,notes,figure,reason"));
    return;
  }
  for (const auto& record : table->rows) {
    QuarantineRule rule;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{3}})
      if (!record.cells[i].empty()) rule.match.when.push_back({columns[i], {record.cells[i]}});
    read_config_pairs(record.cells[2], SourceRef{path, record.line, 0, "config"}, rule.match, sink);
    const std::string& figure = record.cells[4];
    if (figure == "time") rule.figure = QuarantinedFigure::time;
    else if (figure == "memory") rule.figure = QuarantinedFigure::memory;
    else if (!figure.empty())
      sink.push_back(make_diagnostic(Errc::out_of_range, SourceRef{path, record.line, 0, "figure"}, "must be time, memory or empty"));
    rule.reason = record.cells[5];
    if (rule.reason.empty())
      sink.push_back(make_diagnostic(Errc::missing_field, SourceRef{path, record.line, 0, "reason"}, "a quarantined row needs a reason"));
    book.quarantine.push_back(std::move(rule));
  }
}

}  // namespace

RowMatch read_row_match(MapReader& reader, Sink& sink) {
  RowMatch match;
  match.when = read_conditions(reader.child("when"), sink);
  match.unless = read_conditions(reader.child("unless"), sink);
  return match;
}

Result<RuleBook> load_rule_book(const DataStore& data) {
  const std::string folder = data.root() + "/measured/";
  RuleBook book;
  Sink sink;
  if (const auto root = formats::read_document(folder + "sources.yaml"); !root) {
    append(sink, root.error());
  } else if (const ConfigNode* rules = rule_list(*root, "rules", "nd/measured-sources/1", sink)) {
    for (const ConfigNode& item : rules->items) book.sources.push_back(read_source_rule(item, sink));
  }
  if (const auto root = formats::read_document(folder + "models.yaml"); !root) {
    append(sink, root.error());
  } else if (const ConfigNode* models = rule_list(*root, "models", "nd/measured-models/1", sink)) {
    for (const ConfigNode& item : models->items) book.models.push_back(read_model_rule(item, sink));
  }
  read_quarantine(folder + "quarantine.csv", book, sink);
  const bool failed = std::any_of(sink.begin(), sink.end(), [](const Diagnostic& d) { return d.severity == Severity::error; });
  if (failed) return Error(std::move(sink));
  return book;
}

}  // namespace nd::report
