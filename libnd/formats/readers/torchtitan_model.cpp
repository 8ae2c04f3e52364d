// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/torchtitan_model.hpp"

#include <utility>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/tree/map_reader.hpp"

namespace nd::formats::torchtitan {
namespace {

std::vector<std::string> keys_of(const ConfigNode& node) {
  std::vector<std::string> out;
  for (const auto& [key, value] : node.members) out.push_back(key);
  return out;
}

/// The member whose name is `name` in any case.
const ConfigNode* find_name(const ConfigNode& node, const std::string& name) {
  for (const auto& [key, value] : node.members)
    if (core::canonical_name(key) == core::canonical_name(name)) return &value;
  return nullptr;
}

/// Reads the model of one document. Thread-compatible; lives for one document.
class ModelReader {
 public:
  ModelReader(const ConfigNode& root, Section& model, const DataStore& data, Findings& findings)
      : root_(root), model_(model), data_(data), findings_(findings) {}

  Model read() {
    const ConfigNode* const own = find_path(root_, "nd.model");
    flavor(own != nullptr);
    if (own != nullptr) overrides(*own);
    if (!out_.found) return std::move(out_);
    auto filled = data_.with_family_defaults(std::move(out_.spec), findings_.notes);
    if (filled) {
      out_.spec = *std::move(filled);
    } else {
      findings_.problems.insert(findings_.problems.end(), filled.error().diagnostics.begin(), filled.error().diagnostics.end());
      out_.found = false;
    }
    return std::move(out_);
  }

 private:
  void flavor(bool optional) {
    const auto name = model_.map().string("name"), flavor = model_.map().string("flavor");
    if (!name || !flavor) {
      if (optional) return;
      model_.map().require("name", "the model family, for example \"llama3\"");
      model_.map().require("flavor", "the size of the model, for example \"8B\"");
      return;
    }
    const auto table = read_document(data_.root() + "/flavors/torchtitan.yaml");
    if (!table) {
      findings_.problems.insert(findings_.problems.end(), table.error().diagnostics.begin(), table.error().diagnostics.end());
      return;
    }
    const ConfigNode* const models = table->find("models");
    if (models == nullptr) return;
    const ConfigNode* const family = find_name(*models, *name);
    if (family == nullptr) {
      if (!optional)
        model_.map().error("name", Errc::out_of_range, "no model '" + name->substr(0, kShown) + "' is known",
                           core::name_hint(*name, keys_of(*models)) + "; its fields can stand in a table [nd.model]");
      return;
    }
    const ConfigNode* const flavors = family->find("flavors");
    const ConfigNode* const facts = flavors == nullptr ? nullptr : find_name(*flavors, *flavor);
    if (facts == nullptr) {
      if (!optional)
        model_.map().error("flavor", Errc::out_of_range, *name + " has no flavor '" + flavor->substr(0, kShown) + "'",
                           (flavors == nullptr ? "" : core::name_hint(*flavor, keys_of(*flavors))) + "; its fields can stand in a table [nd.model]");
      return;
    }
    fields(*facts, model_.where("flavor"));
    if (const ConfigNode* const type = family->find("family")) out_.spec.model_type = type->text;
    out_.spec.name = *name + "-" + *flavor;
    out_.found = true;
  }

  void overrides(const ConfigNode& node) {
    fields(node, {});
    MapReader map(node, findings_.problems);
    if (const auto name = map.string("name")) out_.spec.name = *name;
    if (const auto type = map.string("model_type")) out_.spec.model_type = *type;
    if (out_.spec.name.empty()) out_.spec.name = "custom";
    out_.found = true;
  }

  /// `where` names the place in the user's file that the facts come from; empty: each field's own.
  void fields(const ConfigNode& node, const SourceRef& where) {
    MapReader map(node, findings_.problems);
    for (const auto& [key, value] : node.members) {
      if (key == "name" || key == "model_type") continue;
      if (!read_model_field(map, key, key, out_.spec)) {
        findings_.problems.push_back(make_diagnostic(Errc::unknown_key, value.key_where(), "unknown key '" + key.substr(0, kShown) + "': the table states a model only",
                                                     core::name_hint(key, model_field_names())));
        continue;
      }
      out_.places.insert_or_assign(key, where.file.empty() ? value.where : where);
    }
  }

  static constexpr std::size_t kShown = 60;
  const ConfigNode& root_;
  Section& model_;
  const DataStore& data_;
  Findings& findings_;
  Model out_;
};

}  // namespace

Model read_model(const ConfigNode& root, Section& model, const DataStore& data, Findings& findings) {
  return ModelReader(root, model, data, findings).read();
}

}  // namespace nd::formats::torchtitan
