// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/readers/mindformers_model.hpp"
#include "formats/readers/mindformers_run.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/stage_lists.hpp"

namespace nd::formats {

namespace {

void require_section(Section& section, std::string_view what, Findings& findings) {
  if (section.stated()) return;
  findings.problems.push_back(
      make_diagnostic(Errc::missing_field, section.node().where, "the section '" + section.node().where.path + "' is required: " + std::string(what)));
}

/// What is wrong with the model as a whole. A field that was refused is open: it is not reported as missing besides.
void add_model_problems(const ModelSpec& spec, const ConfigNode& section, const FieldPlaces& places, Findings& findings) {
  const std::vector<Diagnostic> before = findings.problems;
  for (auto& problem : model_problems(spec, section, places)) {
    const auto same_place = [&problem](const Diagnostic& other) { return other.where == problem.where; };
    if (problem.code != Errc::missing_field || std::none_of(before.begin(), before.end(), same_place))
      findings.problems.push_back(std::move(problem));
  }
}

/// Warnings and errors in the order of the file, whatever order the parts were read in.
void sort_by_place(std::vector<Diagnostic>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.where.line != b.where.line ? a.where.line < b.where.line : a.where.column < b.where.column;
  });
}

}  // namespace

Result<Request> read_mindformers(const ConfigNode& root, const std::string&, const DataStore& data, const ReadOptions&) {
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
  require_section(model, "the model", findings);
  require_section(degrees, "the parallel degrees", findings);

  Request out;
  const auto spec = mindformers::read_model({trainer, model, experts}, data, findings);
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
  for (Section* const section : {&top, &trainer, &runner, &context, &parallel, &sharding, &pipeline, &degrees, &recompute, &experts, &outer, &model})
    section->finish();
  if (model.stated()) add_model_problems(out.model, model.node(), spec.places, findings);
  if (!findings.problems.empty()) {
    sort_by_place(findings.problems);
    return Error(std::move(findings.problems));
  }
  sort_by_place(findings.notes);
  out.notes = std::move(findings.notes);
  return out;
}

}  // namespace nd::formats
