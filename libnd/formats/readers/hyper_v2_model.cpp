// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/hyper_v2_model.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/readers/hf_model.hpp"
#include "formats/tree/map_reader.hpp"

namespace nd::formats::hyper_v2 {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kRunOverrides{"offset", "full_rec", "sel_rec", "capacity_factor", "cap_fact", "use_gmm", "gmm"};

/// Spellings of the trainer's own model spec that differ from the Hugging Face ones.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSpellings{{
    {"attn_output_gate", "attention_output_gate"},
    {"qkv_bias", "attention_bias"},
    {"o_bias", "attention_output_bias"},
    {"mlp_bias", "ffn_bias"},
    {"layer_norms", "norms_per_layer"},
    {"n_routed_experts", "num_experts"},
    {"moe_inter_dim", "moe_intermediate_size"},
}};

void read_overrides(const ConfigNode& node, Model& model, Findings& findings) {
  MapReader map(node, findings.problems);
  ModelSpec stated;
  for (const auto& [key, value] : node.members) {
    if (is_run_override(key) || key == "name" || key == "model_type" || value.is_null()) continue;
    if (!read_model_field(map, key, model_field_of(key), stated)) {
      findings.problems.push_back(make_diagnostic(Errc::unknown_key, value.key_where(),
                                                  "unknown key '" + key.substr(0, 60) + "': the overrides state a model only",
                                                  core::name_hint(key, model_keys())));
      continue;
    }
    model.places.insert_or_assign(std::string(model_field_of(key)), value.where);
  }
  merge_model_fields(model.spec, stated, Precedence::replace);
}

/// Model fields beside _target_ (a cropped num_hidden_layers) are overrides too, below config_overrides.
void read_bare_fields(const ConfigNode& section, Model& model, Findings& findings) {
  MapReader map(section, findings.problems);
  ModelSpec stated;
  for (const auto& [key, value] : section.members)
    if (!value.is_null() && read_model_field(map, key, key, stated)) model.places.insert_or_assign(key, value.where);
  merge_model_fields(model.spec, stated, Precedence::replace);
}

/// Whether the checkpoint was read; its problems are warnings when overrides can stand alone.
bool read_checkpoint(const ConfigNode& stated, const ModelSource& source, Model& model, Findings& findings) {
  const std::string file = checkpoint_config_file(stated.text, source.path, source.data);
  auto read = read_document(file).and_then([&](const ConfigNode& root) { return read_hf_model(root, file, source.data); });
  if (read) {
    model.spec = std::move(read->spec);
    model.places = std::move(read->places);
    findings.notes.insert(findings.notes.end(), read->notes.begin(), read->notes.end());
    return true;
  }
  const Severity severity = model.overrides != nullptr ? Severity::warning : Severity::error;
  Diagnostic one = make_diagnostic(severity == Severity::error ? read.error().code() : Errc::io, stated.where,
                                   "the checkpoint's config.json cannot be read" +
                                       std::string(model.overrides != nullptr ? "; only config_overrides is used" : ""),
                                   "looked for " + file);
  one.severity = severity;
  auto& sink = severity == Severity::error ? findings.problems : findings.notes;
  sink.push_back(std::move(one));
  // A file that is there and wrong says where.
  if (severity == Severity::error && read.error().code() != Errc::io)
    sink.insert(sink.end(), read.error().diagnostics.begin(), read.error().diagnostics.end());
  return false;
}

/// Parts of the checkpoint the trainer does not build.
void drop_untrained(const ModelSource& source, Model& model, Findings& findings) {
  if (!source.auto_models || model.spec.mtp_depth.value_or(0) == 0) return;
  findings.note(source.root.where, "the trainer's AutoModels build no MTP block; the checkpoint's is not priced");
  model.spec.mtp_depth = 0;
}

}  // namespace

bool is_auto_models(const ConfigNode& root) {
  if (root.find("train") == nullptr && root.find("data") == nullptr) return true;
  return find_path(root, "model.pretrained_model_name_or_path") != nullptr || root.find("training") != nullptr ||
         root.find("accelerator") != nullptr || root.find("fsdp_config") != nullptr;
}

std::string_view model_field_of(std::string_view key) {
  for (const auto& [spelling, field] : kSpellings)
    if (spelling == key) return field;
  return key;
}

std::vector<std::string> model_keys() {
  std::vector<std::string> out = model_field_names();
  for (const auto key : kRunOverrides) out.emplace_back(key);
  for (const auto& [spelling, field] : kSpellings) out.emplace_back(spelling);
  out.emplace_back("seq_length");
  return out;
}

bool is_run_override(std::string_view key) {
  return key == "seq_length" || std::find(kRunOverrides.begin(), kRunOverrides.end(), key) != kRunOverrides.end();
}

Model read_model(const ModelSource& source, Findings& findings) {
  Model out;
  const ConfigNode* const section = source.root.find("model");
  MapReader map(section != nullptr ? *section : source.root, findings.problems);
  const ConfigNode* const overrides = section != nullptr ? section->find("config_overrides") : nullptr;
  if (overrides != nullptr && !overrides->is_null()) out.overrides = overrides;
  const ConfigNode* checkpoint = nullptr;
  if (section != nullptr)
    for (const std::string_view key : {"pretrained_model_name_or_path", "config_path"})
      if (const ConfigNode* const path = section->find(key); checkpoint == nullptr && path != nullptr && !path->is_null()) {
        if (map.string(key)) checkpoint = path;
      }
  if (checkpoint == nullptr && out.overrides == nullptr) {
    SourceRef where = section != nullptr ? section->where : source.root.where;
    findings.problems.push_back(make_diagnostic(
        Errc::missing_field, std::move(where),
        "model.pretrained_model_name_or_path, model.config_path or model.config_overrides is required", "nothing says which model is trained"));
    return out;
  }
  const bool read = checkpoint != nullptr && read_checkpoint(*checkpoint, source, out, findings);
  out.found = read || out.overrides != nullptr;
  if (section != nullptr) read_bare_fields(*section, out, findings);
  if (out.overrides != nullptr) {
    read_overrides(*out.overrides, out, findings);
    if (!read) {
      out.spec.name = map.string("name").value_or("custom");
      MapReader own(*out.overrides, findings.problems);
      out.spec.model_type = own.string("model_type").value_or(out.spec.name == "custom" ? std::string() : out.spec.name);
      auto filled = source.data.with_family_defaults(std::move(out.spec), findings.notes);
      if (filled) {
        out.spec = *std::move(filled);
      } else {
        findings.problems.insert(findings.problems.end(), filled.error().diagnostics.begin(), filled.error().diagnostics.end());
        out.found = false;
      }
    }
  }
  drop_untrained(source, out, findings);
  return out;
}

}  // namespace nd::formats::hyper_v2
