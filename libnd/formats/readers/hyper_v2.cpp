// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/model_fields.hpp"
#include "formats/readers/hyper_v2_model.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/stage_lists.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/schedule.hpp"

namespace nd::formats {
namespace {

const ConfigNode& section_or_self(const ConfigNode& root, std::string_view key) {
  const ConfigNode* const node = root.find(key);
  return node != nullptr && node->is_mapping() ? *node : root;
}

/// Reads the run of one train.yaml. Thread-compatible; lives for one document.
class HyperReader {
 public:
  HyperReader(const ConfigNode& root, const hyper_v2::Model& model, const ReadOptions& options, Findings& findings)
      : root_(root),
        options_(options),
        auto_models_(hyper_v2::is_auto_models(root)),
        legacy_(section_or_self(root, "train")),
        model_(model),
        findings_(findings),
        top_(root, findings.problems),
        training_(root, auto_models_ ? "training" : "train", findings),
        accelerator_(auto_models_ ? root : legacy_, "accelerator", findings),
        fsdp_(root, "fsdp_config", findings),
        checkpointing_(auto_models_ ? root : legacy_, auto_models_ ? "activation_checkpoint" : "gradient_checkpointing", findings),
        context_(root, "context", findings),
        model_section_(root, "model", findings),
        optimizer_(auto_models_ ? root : legacy_, "optimizer", findings) {}

  RunSpec read() {
    // The older schema drives MindSpore's parallel optimizer, whose habits are the MindFormers profile's.
    run_.framework = auto_models_ ? "hyperparallel" : "mindformers";
    if (!auto_models_) findings_.note(root_.where, "the older schema runs on MindSpore: priced with the MindFormers profile");
    run_.origins["framework"] = {Origin::Kind::file, root_.where};
    degrees();
    sharding();
    batch();
    sequence();
    optimizer_and_widths();
    recompute();
    layout();
    context();
    report_unread();
    return std::move(run_);
  }

 private:
  void count(const char* field, std::optional<std::int64_t> RunSpec::*member, Section& section, Names names) {
    const std::string_view key = section.key(names);
    state(run_, field, member, section.map().positive(key), section.where(key));
  }

  void degrees() {
    count("tp", &RunSpec::tp, accelerator_, {"tp_size", "tp_degree"});
    count("pp", &RunSpec::pp, accelerator_, {"pp_size", "pipeline_parallel_degree"});
    count("cp", &RunSpec::cp, accelerator_, {"cp_size", "context_parallel_degree"});
    count("ep", &RunSpec::ep, accelerator_, {"ep_size", "expert_parallel_degree"});
    count("vpp", &RunSpec::vpp, accelerator_, {"pp_interleave_num"});
    read_expert_tensor();
    const std::string_view sp = accelerator_.key({"sequence_parallel", "use_seq_parallel"});
    state(run_, "sequence_parallel", &RunSpec::sequence_parallel, accelerator_.map().boolean(sp), accelerator_.where(sp));
    if (!run_.sequence_parallel) run_.sequence_parallel = false;  // the trainer's default
    read_schedule();
    read_context_algorithm();
    accelerator_.map().ignore({"loss_parallel"});
  }

  /// 0 is the trainer's "not set"; experts are then whole on a rank.
  void read_expert_tensor() {
    constexpr const char* kKey = "expert_tensor_parallel_degree";
    auto value = accelerator_.map().integer(kKey);
    if (value && *value < 0) {
      accelerator_.map().error(kKey, Errc::out_of_range, "must be at least 0, is " + std::to_string(*value));
      value.reset();
    }
    if (value.value_or(0) > 0) state(run_, "etp", &RunSpec::etp, value, accelerator_.where(kKey));
    if (!run_.etp) run_.etp = 1;
  }

  void read_schedule() {
    const auto name = accelerator_.map().string("pipeline_scheduler");
    if (!name) return;
    if (const auto schedule = find_schedule(*name)) {
      const bool chunks = schedule == Schedule::one_f_one_b && run_.vpp.value_or(1) > 1;
      return state(run_, "schedule", &RunSpec::schedule, std::optional(chunks ? Schedule::interleaved : *schedule), accelerator_.where("pipeline_scheduler"));
    }
    std::vector<std::string> known;
    for (const Schedule schedule : all_schedules()) known.emplace_back(to_text(schedule));
    accelerator_.map().error("pipeline_scheduler", Errc::unsupported, "unknown schedule '" + name->substr(0, 60) + "'",
                             core::name_hint(*name, known));
  }

  void read_context_algorithm() {
    constexpr std::array<std::pair<std::string_view, CpAlgorithm>, 6> kAlgorithms{{
        {"colossalai_cp", CpAlgorithm::all_gather},
        {"ring_cp", CpAlgorithm::ring},
        {"ring", CpAlgorithm::ring},
        {"ulysses_cp", CpAlgorithm::ulysses},
        {"ulysses", CpAlgorithm::ulysses},
        {"all_gather", CpAlgorithm::all_gather},
    }};
    constexpr const char* kKey = "context_parallel_algo";
    const auto name = accelerator_.map().string(kKey);
    if (!name) {
      if (run_.cp.value_or(1) > 1)
        findings_.warn(Errc::missing_field, accelerator_.where(kKey), "no algorithm is stated; colossalai_cp (keys and values gathered) is assumed");
      run_.cp_algorithm = CpAlgorithm::all_gather;
      return;
    }
    const std::string wanted = core::canonical_name(*name);
    for (const auto& [known, algorithm] : kAlgorithms)
      if (known == wanted) return state(run_, "cp_algorithm", &RunSpec::cp_algorithm, std::optional(algorithm), accelerator_.where(kKey));
    accelerator_.map().error(kKey, Errc::unsupported, "unknown algorithm '" + name->substr(0, 60) + "'",
                             "known: colossalai_cp, ulysses_cp, all_gather");
  }

  void sharding() {
    state(run_, "devices", &RunSpec::devices, context_.map().positive("device_num"), context_.where("device_num"));
    const std::int64_t inner = degree(run_.tp) * degree(run_.pp) * degree(run_.cp);
    if (run_.devices && *run_.devices % inner != 0) {
      context_.map().error("device_num", Errc::conflict,
                           std::to_string(*run_.devices) + " devices are not divisible by tp*pp*cp = " + std::to_string(inner));
      run_.devices.reset();
    }
    if (!run_.devices && auto_models_ && options_.devices && *options_.devices % inner == 0) {
      run_.devices = options_.devices;
      run_.origins["devices"] = {Origin::Kind::flag, {{}, 0, 0, "-d"}};
    }
    if (auto_models_) {
      shard_auto_models();
    } else {
      shard_legacy();
    }
  }

  /// dp_shard_size ranks of the dp x cp domain share parameters, gradients and states.
  void shard_auto_models() {
    MapReader& map = fsdp_.map();
    const std::int64_t shard = map.positive("dp_shard_size").value_or(1);
    const bool after_forward = map.boolean("reshard_after_forward").value_or(true);
    const bool after_backward = map.boolean("reshard_after_backward").value_or(true);
    run_.optimizer_shard = shard;
    run_.origins["optimizer_shard"] = {Origin::Kind::file, fsdp_.where("dp_shard_size")};
    run_.zero = shard == 1 ? ZeroLevel::none : after_forward && after_backward ? ZeroLevel::parameters : ZeroLevel::gradients;
    run_.origins["zero"] = {Origin::Kind::file, fsdp_.where(after_forward ? "reshard_after_backward" : "reshard_after_forward")};
    const std::int64_t expert_shard = map.positive("edp_shard_size").value_or(1);
    map.ignore({"replicate_params", "forward_prefetch_depth", "backward_prefetch_depth", "comm_fusion", "recompute_slice_activation"});
    check_expert_shard(expert_shard);
    if (run_.devices) return;
    const std::int64_t cp = degree(run_.cp);
    if (shard % cp != 0)
      return map.error("dp_shard_size", Errc::conflict, "must be a multiple of cp " + std::to_string(cp) + " where context.device_num is not stated");
    run_.dp = shard / cp;
    run_.origins["dp"] = {Origin::Kind::file, fsdp_.where("dp_shard_size")};
    findings_.warn(Errc::missing_field, context_.where("device_num"), "is not stated; one replica of the sharded model is assumed",
                   "state context.device_num");
  }

  void check_expert_shard(std::int64_t expert_shard) {
    if (!run_.devices) return;
    const std::int64_t ranks = *run_.devices / degree(run_.pp), ep = degree(run_.ep);
    if (ranks % ep == 0 && ranks / ep % expert_shard != 0)
      fsdp_.map().error("edp_shard_size", Errc::conflict,
                        std::to_string(expert_shard) + " does not divide the " + std::to_string(ranks / ep) + " ranks of an expert group (dp*cp*tp/ep)");
  }

  void shard_legacy() {
    MapReader& map = accelerator_.map();
    const auto shard = map.positive("dp_shard"), replicas = map.positive("dp_replicate");
    if (!run_.devices) {
      run_.dp = shard.value_or(1) * replicas.value_or(1);
      run_.origins["dp"] = {Origin::Kind::file, accelerator_.where(replicas ? "dp_replicate" : "dp_shard")};
    }
    const bool on = map.boolean("enable_parallel_optimizer").value_or(true);
    const bool gradients = map.boolean("gradient_accumulation_shard").value_or(false);
    const auto size = map.integer("optimizer_weight_shard_size");
    run_.zero = !on ? ZeroLevel::none : gradients ? ZeroLevel::gradients : ZeroLevel::optimizer;
    run_.origins["zero"] = {Origin::Kind::file, accelerator_.where(gradients ? "gradient_accumulation_shard" : "enable_parallel_optimizer")};
    if (!on) {
      run_.optimizer_shard = 1;
    } else if (size.value_or(-1) > 0) {  // -1: over all of them
      state(run_, "optimizer_shard", &RunSpec::optimizer_shard, size, accelerator_.where("optimizer_weight_shard_size"));
    }
  }

  void batch() {
    count("micro_batch_size", &RunSpec::micro_batch_size, training_, {"micro_batch_size"});
    count("micro_batch_num", &RunSpec::micro_batch_num, training_, {"micro_batch_num"});
    count("global_batch_size", &RunSpec::global_batch_size, training_, {"global_batch_size"});
    if (!run_.micro_batch_size) run_.micro_batch_size = 1;
    if (run_.micro_batch_num || run_.global_batch_size) return;
    run_.micro_batch_num = degree(run_.pp);
    findings_.warn(Errc::missing_field, training_.where("global_batch_size"),
                   "no batch is stated; " + std::to_string(degree(run_.pp)) + " micro-batches (one per stage) are assumed");
  }

  void sequence() {
    for (const std::string_view path : {"dataset.data_transform.max_seq_len", "dataset.data_config.seq_length", "data.max_seq_len"}) {
      const std::size_t dot = path.rfind('.');
      const ConfigNode* const section = find_path(root_, path.substr(0, dot));
      if (section == nullptr || !section->is_mapping()) continue;
      MapReader map(*section, findings_.problems);
      state(run_, "seq_length", &RunSpec::seq_length, map.positive(path.substr(dot + 1)), map.where(path.substr(dot + 1)));
      if (run_.seq_length) return;
    }
    if (model_.overrides != nullptr) {
      MapReader map(*model_.overrides, findings_.problems);
      state(run_, "seq_length", &RunSpec::seq_length, map.positive("seq_length"), map.where("seq_length"));
      if (run_.seq_length) return;
    }
    constexpr std::int64_t kAssumed = 4096;
    run_.seq_length = model_.spec.max_position_embeddings.value_or(kAssumed);
    findings_.warn(Errc::missing_field, root_.where,
                   "no sequence length is stated; " + std::to_string(*run_.seq_length) +
                       (model_.spec.max_position_embeddings ? " (the model's limit) is assumed" : " is assumed"),
                   "state dataset.data_transform.max_seq_len");
  }

  /// Bytes per element of the first stated type.
  std::optional<double> stated_width(std::initializer_list<std::pair<MapReader*, std::string_view>> places, const char* field) {
    for (const auto& [map, key] : places) {
      const auto name = map->string(key);
      if (!name || core::canonical_name(*name) == "auto") continue;
      const auto width = dtype_bytes(*name);
      if (!width) {
        map->error(key, Errc::out_of_range, "unknown data type '" + name->substr(0, 60) + "'", "float32, bfloat16, float16");
        return std::nullopt;
      }
      run_.origins[field] = {Origin::Kind::file, map->where(key)};
      return width;
    }
    return std::nullopt;
  }

  void optimizer_and_widths() {
    MapReader& model = model_section_.map();
    const ConfigNode* const precision = fsdp_.map().child("mix_precision");
    static const ConfigNode kEmpty = [] {
      ConfigNode node;
      node.kind = NodeKind::mapping;
      return node;
    }();
    MapReader mix(precision != nullptr ? *precision : kEmpty, findings_.problems);
    constexpr double kWide = 4;  // the trainer's default is float32
    const double stored = stated_width({{&mix, "param_dtype"}, {&top_, "model_init_dtype"}, {&model, "torch_dtype"}, {&model, "param_init_type"}},
                                             "param_bytes").value_or(kWide);
    run_.param_bytes = stored;
    for (const std::string_view key : {"torch_dtype", "compute_dtype"}) {
      const auto name = model.string(key);
      if (!name || run_.compute_dtype) continue;
      state(run_, "compute_dtype", &RunSpec::compute_dtype, activation_dtype(*name), model_section_.where(key));
    }
    if (const auto width = stated_width({{&model, "softmax_compute_type"}}, "softmax_bytes")) run_.softmax_bytes = *width;
    run_.flash_attention = true;  // fixed in this trainer
    read_optimizer(stored);
  }

  /// Class or type name; AdamW's moments are as wide as the parameters unless fp32 copies are asked for.
  void read_optimizer(double stored) {
    MapReader& map = optimizer_.map();
    const auto target = map.string("_target_"), type = map.string("type");
    const bool wide = map.boolean("fp32_main_params").value_or(false);
    map.ignore_rest();
    const std::string name = core::canonical_name(target ? *target : type.value_or(""));
    const std::string_view key = target ? "_target_" : "type";
    constexpr double kNarrow = 2;
    const bool narrow_states = auto_models_ && !wide && stored <= kNarrow;
    if (name.empty())
      findings_.warn(Errc::missing_field, optimizer_.where("_target_"), "no optimizer is stated; AdamW with two moments is assumed");
    const auto known = optimizer_of_name(name);
    if (!name.empty() && !known) findings_.warn(Errc::unsupported, optimizer_.where(key), unknown_optimizer(target ? *target : *type));
    const OptimizerKind kind = known.value_or(OptimizerKind::adamw);
    run_.optimizer = kind == OptimizerKind::adamw && narrow_states ? OptimizerKind::adamw_bf16_states : kind;
    run_.origins["optimizer"] = {known ? Origin::Kind::file : Origin::Kind::fallback, optimizer_.where(key)};
  }

  /// "off", "selective", "full"; YAML reads a bare off as false. Anything else would be priced wrongly.
  std::optional<Recompute> recompute_mode(const ConfigNode& node) {
    const std::string text = node.is_scalar() ? core::canonical_name(node.text) : std::string();
    const auto flag = as_boolean(node);
    if (flag == false || text == "off" || text == "none") return Recompute::off;
    if (text == "selective") return Recompute::selective;
    if (text == "full") return Recompute::full;
    findings_.problems.push_back(make_diagnostic(Errc::out_of_range, node.where,
                                                 (node.is_scalar() ? "'" + node.text.substr(0, 60) + "'" : describe(node)) +
                                                     " is not off, selective or full"));
    return std::nullopt;
  }

  void recompute() {
    MapReader& map = checkpointing_.map();
    const std::string_view key = auto_models_ ? "mode" : "activation_checkpoint";
    if (const ConfigNode* const node = map.child(key)) {
      state(run_, "recompute", &RunSpec::recompute, recompute_mode(*node), node->where);
    } else {
      run_.recompute = Recompute::off;  // the trainer's default
    }
    if (const auto sliced = map.boolean("recompute_slice_activation"); sliced.value_or(false))
      findings_.note(checkpointing_.where("recompute_slice_activation"),
                     "the kept layer inputs are priced as the framework profile says (recompute_keeps_layer_input_sharded)");
    if (const ConfigNode* const layers = map.child("layers")) read_layer_modes(*layers);
  }

  /// Keys "i" or "i-j" -> mode, over body layers in order; turned into counts per stage.
  void read_layer_modes(const ConfigNode& node) {
    const std::int64_t layers = model_.spec.num_hidden_layers.value_or(0);
    constexpr std::int64_t kMostLayers = 1 << 16;
    if (layers < 1 || layers > kMostLayers || !run_.recompute) return;
    MapReader map(node, findings_.problems);
    std::vector<Recompute> modes(static_cast<std::size_t>(layers), *run_.recompute);
    for (const auto& [key, value] : node.members) {
      const auto ends = core::split(key, '-');
      const auto first = core::parse_integer(core::trim(ends.front()));
      const auto last = core::parse_integer(core::trim(ends.back()));
      if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= layers) {
        findings_.problems.push_back(make_diagnostic(Errc::out_of_range, value.key_where(), "'" + key.substr(0, 60) + "' names no layers of 0 to " + std::to_string(layers - 1),
                                                     "a layer (\"3\") or a range (\"0-7\")"));
        continue;
      }
      if (const auto mode = recompute_mode(value))
        std::fill(modes.begin() + *first, modes.begin() + *last + 1, *mode);
    }
    layer_modes_ = std::move(modes);
    run_.origins["full_recompute_layers"] = {Origin::Kind::file, node.where};
  }

  /// The format does not say whether an offset counts the MTP blocks; it does when the layers then add up.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> counted_with_mtp(const ConfigNode& offset, PipelineShape pipeline) const {
    pipeline.mtp = model_.spec.mtp_depth.value_or(0);
    if (pipeline.mtp == 0) return {};
    ConfigNode inner, outer;
    inner.kind = outer.kind = NodeKind::mapping;
    inner.members.emplace_back("offset", offset);
    outer.members.emplace_back("trial", std::move(inner));
    Findings dropped;
    Section trial(outer, "trial", dropped);
    return read_offset(trial, pipeline);
  }

  void layout() {
    // model.config_overrides.offset, else model.offset.
    const bool in_overrides = model_.overrides != nullptr && model_.overrides->find("offset") != nullptr;
    ConfigNode holder;
    holder.kind = NodeKind::mapping;
    holder.where = root_.where;
    if (model_.overrides != nullptr) holder.members.emplace_back("config_overrides", *model_.overrides);
    Section overrides(holder, "config_overrides", findings_);
    Section& section = in_overrides ? overrides : model_section_;
    PipelineShape pipeline;
    pipeline.layers = model_.spec.num_hidden_layers.value_or(0);
    pipeline.stages = degree(run_.pp);
    pipeline.chunks = degree(run_.vpp);
    if (const ConfigNode* const offset = section.map().child("offset"); offset != nullptr && as_integer(*offset) != 0) {
      run_.layers_per_chunk = counted_with_mtp(*offset, pipeline);
      if (run_.layers_per_chunk.empty()) run_.layers_per_chunk = read_offset(section, pipeline);
      if (!run_.layers_per_chunk.empty()) run_.origins["layers_per_chunk"] = {Origin::Kind::file, offset->where};
    }
    if (const auto factor = overrides.map().real(overrides.key({"capacity_factor", "cap_fact"}))) {
      run_.capacity_factor = std::max(1.0, *factor);
      run_.origins["capacity_factor"] = {Origin::Kind::file, overrides.where(overrides.key({"capacity_factor", "cap_fact"}))};
    }
    spread_layer_modes(pipeline);
  }

  /// Layers of each stage: the stated layout, else even with the remainder on the first stages.
  void spread_layer_modes(const PipelineShape& pipeline) {
    if (layer_modes_.empty() || pipeline.stages > pipeline.layers) return;
    const auto stages = static_cast<std::size_t>(pipeline.stages);
    std::vector<std::int64_t> full(stages, 0), selective(stages, 0);
    auto chunks = run_.layers_per_chunk;
    if (chunks.empty()) {
      const std::int64_t places = pipeline.stages * pipeline.chunks;
      std::int64_t rest = pipeline.layers % places;
      chunks.assign(static_cast<std::size_t>(pipeline.chunks), std::vector<std::int64_t>(stages, pipeline.layers / places));
      for (auto& chunk : chunks)
        for (auto& count : chunk)
          if (rest > 0) ++count, --rest;
    }
    std::size_t layer = 0;
    for (const auto& chunk : chunks)
      for (std::size_t stage = 0; stage < stages; ++stage)
        for (std::int64_t i = 0; i < chunk[stage] && layer < layer_modes_.size(); ++i, ++layer) {
          full[stage] += layer_modes_[layer] == Recompute::full ? 1 : 0;
          selective[stage] += layer_modes_[layer] == Recompute::selective ? 1 : 0;
        }
    run_.full_recompute_layers = std::move(full);
    run_.selective_recompute_layers = std::move(selective);
  }

  void context() {
    MapReader& map = context_.map();
    const ConfigNode* const limit = map.child("max_device_memory");
    if (limit != nullptr) {
      const auto bytes = limit->is_scalar() ? parse_memory(limit->text) : std::nullopt;
      if (!bytes) map.error("max_device_memory", Errc::out_of_range, "is no memory size, is " + describe(*limit), "for example \"58GB\"");
      state(run_, "device_memory", &RunSpec::device_memory, bytes, limit->where);
    }
    map.ignore({"expert_shard", "visual_seq_len", "recompute", "census"});
  }

  /// Keys of the sections priced from that nobody reads; the other sections hold no price.
  void report_unread() {
    training_.map().ignore({"train_iters", "max_grad_norm", "seed", "backend", "init_device", "optimizer", "accelerator", "gradient_checkpointing"});
    model_section_.map().ignore({"_target_", "pretrained_model_name_or_path", "config_path", "config_overrides", "name", "weights_path",
                                 "local_files_only", "cache_dir", "revision", "subfolder", "token", "trust_remote_code",
                                 "attn_implementation", "torch_dtype", "compute_dtype", "param_init_type", "softmax_compute_type", "offset"});
    for (const std::string& field : model_field_names()) model_section_.map().ignore({field});
    ConfigNode holder;
    holder.kind = NodeKind::mapping;
    holder.members.emplace_back("file", root_);
    Section file(holder, "file", findings_);
    file.map().ignore({"model", "model_init_dtype", "training", "train", "accelerator", "fsdp_config", "activation_checkpoint", "dataset", "data",
                       "optimizer", "context", "dataloader", "lr_scheduler", "checkpoint", "debug", "compile", "low_precision",
                       "plan_overrides", "mixed_precision"});
    file.finish();
    training_.finish();
    model_section_.finish();
    fsdp_.finish();
    accelerator_.finish();
    checkpointing_.finish();
    context_.finish();
  }

  [[nodiscard]] static std::int64_t degree(const std::optional<std::int64_t>& stated) {
    constexpr std::int64_t kAbsurd = 1 << 20;  // keeps products in range; resolve_run() judges the degrees
    return std::min(stated.value_or(1), kAbsurd);
  }

  const ConfigNode& root_;
  const ReadOptions& options_;
  bool auto_models_;
  const ConfigNode& legacy_;
  const hyper_v2::Model& model_;
  Findings& findings_;
  MapReader top_;
  Section training_, accelerator_, fsdp_, checkpointing_, context_, model_section_, optimizer_;
  std::vector<Recompute> layer_modes_;
  RunSpec run_;
};

}  // namespace

Result<Request> read_hyper_v2(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options) {
  Findings findings;
  if (!root.is_mapping()) {
    const MapReader refusing(root, findings.problems);
    return Error(std::move(findings.problems));
  }
  const hyper_v2::Model model = hyper_v2::read_model({root, path, data, hyper_v2::is_auto_models(root)}, findings);
  Request out;
  out.run = HyperReader(root, model, options, findings).read();
  if (model.found) {
    const ConfigNode& place = model.overrides != nullptr ? *model.overrides : section_or_self(root, "model");
    auto problems = model_problems(model.spec, place, model.places);
    findings.problems.insert(findings.problems.end(), problems.begin(), problems.end());
  }
  if (!findings.problems.empty()) return Error(without_repeats(std::move(findings.problems)));
  out.model = model.spec;
  out.notes = std::move(findings.notes);
  return out;
}

}  // namespace nd::formats
