// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "formats/readers/hf_model.hpp"
#include "formats/readers/mindformers_model.hpp"
#include "formats/readers/mindformers_run.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/stage_lists.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {

namespace {

void require_section(Section& section, std::string_view what, Findings& findings) {
  if (section.stated()) return;
  findings.problems.push_back(
      make_diagnostic(Errc::missing_field, section.node().where, "the section '" + section.node().where.path + "' is required: " + std::string(what)));
}

/// A key that changes memory or time and is not priced, with the value that changes nothing.
struct Unpriced {
  Section& section;
  std::string_view key;
  bool harmless;
  const char* what;
};

void warn_unpriced(const Unpriced& one, Findings& findings) {
  const ConfigNode* const node = one.section.map().child(one.key);
  if (node == nullptr || as_boolean(*node) == one.harmless || (node->is_sequence() && node->items.empty())) return;
  findings.warn(Errc::unsupported, node->where, std::string("is not priced: ") + one.what);
}

/// An expert table that is not split over the model-parallel ranks, where there is one stage only.
void warn_table(Section& degrees, const RunSpec& run, Findings& findings) {
  const auto whole = degrees.map().boolean("vocab_emb_dp").value_or(true);
  if (whole && run.tp.value_or(1) > 1 && run.pp.value_or(1) == 1)
    findings.warn(Errc::unsupported, degrees.where("vocab_emb_dp"), "is not priced: the embedding table is counted as split over the model-parallel ranks");
}

/// The model of pretrained_model_dir, whose fields model_config overrides (MindFormers r1.6, "Loading Hugging Face Model
/// Configuration"). A folder that is not here is an error only where model_config states no model of its own.
std::optional<HfModel> read_pretrained(Section& top, const std::string& path, const DataStore& data, bool needed, Findings& findings) {
  const auto stated = top.map().has("pretrained_model_dir") ? top.map().string("pretrained_model_dir") : std::nullopt;
  if (!stated || stated->empty()) return std::nullopt;
  const std::string file = checkpoint_config_file(*stated, path, data);
  auto read = read_document(file).and_then([&](const ConfigNode& root) { return read_hf_model(root, file, data); });
  if (read) {
    findings.notes.insert(findings.notes.end(), read->notes.begin(), read->notes.end());
    return std::move(*read);
  }
  auto missing = make_diagnostic(Errc::io, top.where("pretrained_model_dir"), "the model's config.json cannot be read", "looked for " + file);
  if (!needed) missing.severity = Severity::warning;
  auto& sink = needed ? findings.problems : findings.notes;
  sink.push_back(std::move(missing));
  // A file that is there and wrong says where.
  if (needed && read.error().code() != Errc::io) sink.insert(sink.end(), read.error().diagnostics.begin(), read.error().diagnostics.end());
  return std::nullopt;
}

}  // namespace

Result<Request> read_mindformers(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions&) {
  Findings findings;
  Section top(root, findings);
  top.map().ignore({"trainer", "runner_config", "runner_wrapper", "optimizer", "context", "parallel", "parallel_config", "recompute_config", "model",
                    "moe_config"});
  Section trainer(root, "trainer", findings), runner(root, "runner_config", findings), optimizer(root, "optimizer", findings),
      context(root, "context", findings), parallel(root, "parallel", findings), degrees(root, "parallel_config", findings),
      recompute(root, "recompute_config", findings), experts(root, "moe_config", findings), outer(root, "model", findings);
  Section model(outer.node(), "model_config", findings);
  Section sharding(parallel.node(), "parallel_optimizer_config", findings), pipeline(parallel.node(), "pipeline_config", findings);
  outer.map().ignore({"model_config", "arch"});
  parallel.map().ignore({"parallel_optimizer_config", "pipeline_config"});
  const bool whole = model.stated() && (model.map().has("num_layers") || model.map().has("num_hidden_layers"));
  const auto pretrained = read_pretrained(top, path, data, !whole, findings);
  if (!top.map().has("pretrained_model_dir")) require_section(model, "the model, or pretrained_model_dir, a folder with its config.json", findings);
  require_section(degrees, "the parallel degrees", findings);

  Request out;
  const auto spec = mindformers::read_model({trainer, model, experts, pretrained ? &*pretrained : nullptr}, data, findings);
  out.model = spec.spec;
  mindformers::read_run({context, runner, optimizer, parallel, sharding, pipeline, degrees, model, experts}, spec.spec.num_experts.has_value(),
                        out.run, findings);
  const PipelineShape shape{.layers = spec.spec.num_hidden_layers.value_or(0),
                                    .mtp = spec.mtp_in_offset ? spec.spec.mtp_depth.value_or(0) : 0,
                                    .stages = out.run.pp.value_or(1),
                                    .chunks = out.run.vpp.value_or(1)};
  out.run.layers_per_chunk = read_offset(model, shape);
  if (!out.run.layers_per_chunk.empty()) out.run.origins["layers_per_chunk"] = {Origin::Kind::file, model.where("offset")};
  read_recompute(recompute, shape, out.run, findings);
  Section swap(root, "swap_config", findings);
  for (const Unpriced& one : {Unpriced{recompute, "recompute_slice_activation", false, "kept inputs are counted as the framework profile says"},
                              Unpriced{recompute, "select_comm_recompute", false, "gathered inputs are counted as the framework profile says"},
                              Unpriced{recompute, "mp_comm_recompute", true, "full recompute is counted with its communication"},
                              Unpriced{recompute, "parallel_optimizer_comm_recompute", false, "gathered weights are counted as kept for the backward"},
                              Unpriced{recompute, "select_recompute_exclude", false, "every operator of a recomputed layer is counted as recomputed"},
                              Unpriced{swap, "swap", false, "activations are counted on the device"},
                              Unpriced{swap, "layer_swap", false, "activations are counted on the device"},
                              Unpriced{swap, "op_swap", false, "activations are counted on the device"},
                              Unpriced{experts, "enable_deredundency", false, "tokens are counted as exchanged by one all-to-all"}})
    warn_unpriced(one, findings);
  warn_table(degrees, out.run, findings);
  top.map().ignore({"swap_config"});
  for (Section* const section : {&top, &swap, &trainer, &runner, &context, &parallel, &sharding, &pipeline, &degrees, &recompute, &experts, &outer, &model})
    section->finish();
  if (model.stated() || pretrained) add_model_problems(out.model, model.node(), spec.places, findings);
  if (!findings.problems.empty()) {
    sort_by_place(findings.problems);
    return Error(std::move(findings.problems));
  }
  sort_by_place(findings.notes);
  out.notes = std::move(findings.notes);
  return out;
}

}  // namespace nd::formats
