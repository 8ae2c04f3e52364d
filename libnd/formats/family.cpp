// SPDX-License-Identifier: Apache-2.0
#include "formats/family.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/text.hpp"
#include "formats/model_fields.hpp"
#include "formats/tree/map_reader.hpp"

namespace nd::formats {
namespace {

namespace fs = std::filesystem;

/// A mapping of model fields to values.
ModelSpec read_facts(const ConfigNode& node, std::vector<Diagnostic>& sink) {
  ModelSpec out;
  MapReader map(node, sink);
  for (const auto& [key, value] : node.members)
    if (!read_model_field(map, key, key, out))
      map.error(key, Errc::unknown_key, "no field of a model", core::name_hint(key, model_field_names()));
  return out;
}

Family::Rule read_rule(const ConfigNode& node, std::vector<Diagnostic>& sink) {
  Family::Rule out;
  MapReader map(node, sink);
  map.require("if", "the conditions of a rule");
  if (const ConfigNode* const conditions = map.child("if"))
    for (const auto& [key, value] : conditions->members) out.conditions.emplace_back(key, value.text);
  const ConfigNode* facts = map.child("set");
  if (const ConfigNode* const forced = map.child("override")) {
    facts = forced;
    out.override_stated = true;
  }
  if (facts != nullptr) {
    out.facts = read_facts(*facts, sink);
  } else {
    sink.push_back(make_diagnostic(Errc::missing_field, node.where, "a rule needs 'set' or 'override'"));
  }
  map.finish();
  return out;
}

void read_keys(const ConfigNode& node, Family& family, std::vector<Diagnostic>& sink) {
  MapReader map(node, sink);
  const auto& known = model_field_names();
  for (const auto& [field, keys] : node.members) {
    if (std::find(known.begin(), known.end(), field) == known.end())
      map.error(field, Errc::unknown_key, "no field of a model", core::name_hint(field, known));
    if (auto list = map.strings(field)) family.read[field] = *std::move(list);
  }
}

}  // namespace

const ConfigNode* find_path(const ConfigNode& root, std::string_view path) {
  const ConfigNode* node = &root;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return node == nullptr || node->is_null() ? nullptr : node;
}

bool lists(const Family& family, std::string_view model_type) {
  const std::string wanted = core::canonical_name(model_type);
  return std::any_of(family.model_types.begin(), family.model_types.end(),
                     [&wanted](const std::string& type) { return core::canonical_name(type) == wanted; });
}

Result<Family> read_family(const ConfigNode& root) {
  std::vector<Diagnostic> sink;
  Family out;
  MapReader map(root, sink);
  const auto schema = map.string("schema");
  if (!schema || *schema != "nd/arch/1") map.error("schema", Errc::out_of_range, "must be nd/arch/1");
  for (const char* const key : {"name", "model_types", "source", "defaults"}) map.require(key, "");
  out.name = map.string("name").value_or("");
  out.model_types = map.strings("model_types").value_or(std::vector<std::string>{});
  map.ignore({"source", "note"});
  if (const ConfigNode* const defaults = map.child("defaults")) out.defaults = read_facts(*defaults, sink);
  if (const ConfigNode* const keys = map.child("read")) read_keys(*keys, out, sink);
  if (const ConfigNode* const rules = map.child("when"))
    for (const ConfigNode& rule : rules->items) out.rules.push_back(read_rule(rule, sink));
  out.intermediate_factor = map.positive("intermediate_factor").value_or(0);
  out.intermediate_divisor = map.positive("intermediate_divisor").value_or(1);
  map.finish();
  if (!sink.empty()) return Error(std::move(sink));
  return out;
}

Result<Family> find_family(const std::string& folder, std::string_view model_type) {
  const auto load = [](const std::string& file) { return read_document(file).and_then(read_family); };
  const std::string wanted = core::canonical_name(model_type);
  std::error_code failure;
  // Most types have a file of their own name; only others cost a look into every file.
  const bool plain = !wanted.empty() && wanted.find_first_of("/.") == std::string::npos;
  const std::string own = folder + "/" + wanted + ".yaml";
  if (plain && fs::exists(own, failure)) {
    auto family = load(own);
    if (!family || lists(*family, wanted)) return family;
  }
  std::vector<std::string> files;
  for (fs::directory_iterator it(folder, failure), end; !wanted.empty() && !failure && it != end; it.increment(failure))
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  if (failure) return make_error(Errc::io, {folder, 0, 0, ""}, "the folder cannot be read: " + failure.message(), "is the data folder complete?");
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    auto family = load(file);
    if (!family || lists(*family, wanted)) return family;
  }
  return load(folder + "/default.yaml");
}

}  // namespace nd::formats
