// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/model_fields.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/torchtitan_model.hpp"
#include "formats/readers/torchtitan_stages.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {
namespace {

constexpr std::int64_t kMostDegree = 1 << 20;  // keeps products in range; no cluster has more
// torchtitan/config/job_config.py: what the trainer itself takes where a file says nothing.
constexpr std::int64_t kDefaultSequence = 2048, kDefaultLocalBatch = 8;

/// Reads the run of one TOML file. Thread-compatible; lives for one document.
class TitanReader {
 public:
  TitanReader(const ConfigNode& root, const torchtitan::Model& model, const ReadOptions& options, Findings& findings)
      : root_(root),
        model_(model),
        options_(options),
        findings_(findings),
        training_(root, "training", findings),
        parallel_(root, "parallelism", findings),
        experimental_(root, "experimental", findings),
        checkpointing_(root, "activation_checkpoint", findings),
        optimizer_(root, "optimizer", findings),
        compile_(root, "compile", findings) {}

  RunSpec read() {
    run_.framework = "torchtitan";
    run_.origins["framework"] = {Origin::Kind::file, root_.where};
    degrees();
    world();
    widths();
    batch();
    pipeline();
    recompute();
    kernels();
    report_unread();
    return std::move(run_);
  }

 private:
  /// Sections were cut differently over the years: degrees stood in [training] and [experimental] before [parallelism].
  Section& section_of(std::string_view key) {
    for (Section* const section : {&parallel_, &training_, &experimental_})
      if (section->map().has(key)) return *section;
    return parallel_;
  }

  std::optional<std::int64_t> degree(std::string_view key, bool all_allowed = false) {
    MapReader& map = section_of(key).map();
    const auto value = map.integer(key);
    if (!value) return std::nullopt;
    if (all_allowed && *value == -1) return value;
    if (*value >= 1 && *value <= kMostDegree) return value;
    map.error(key, Errc::out_of_range, "must be from 1 to " + std::to_string(kMostDegree) + (all_allowed ? ", or -1 for all that is left" : "") + ", is " + std::to_string(*value));
    return std::nullopt;
  }

  void take(const char* field, std::optional<std::int64_t> RunSpec::*member, std::string_view key) {
    const auto value = degree(key);
    state(run_, field, member, std::optional<std::int64_t>(value.value_or(1)), section_of(key).where(key));
  }

  void degrees() {
    take("tp", &RunSpec::tp, "tensor_parallel_degree");
    take("pp", &RunSpec::pp, "pipeline_parallel_degree");
    take("cp", &RunSpec::cp, "context_parallel_degree");
    take("ep", &RunSpec::ep, "expert_parallel_degree");
    take("etp", &RunSpec::etp, "expert_tensor_parallel_degree");
    Section& parallel = section_of("enable_sequence_parallel");
    run_.sequence_parallel = *run_.tp > 1 && parallel.map().boolean("enable_sequence_parallel").value_or(true);
    run_.origins["sequence_parallel"] = {Origin::Kind::file, section_of("tensor_parallel_degree").where("tensor_parallel_degree")};
    if (*run_.ep > 1 && *run_.etp != 1 && *run_.etp != *run_.tp)
      section_of("expert_tensor_parallel_degree").map().error("expert_tensor_parallel_degree", Errc::conflict,
                                                              "must be 1 or the tensor parallel degree " + std::to_string(*run_.tp) + ", is " + std::to_string(*run_.etp));
    if (!model_.spec.num_experts && *run_.ep > 1) {
      findings_.warn(Errc::conflict, section_of("expert_parallel_degree").where("expert_parallel_degree"),
                     "expert parallelism for a model without experts is priced as none");
      run_.ep = 1;
    }
    if (!model_.spec.num_experts) run_.etp = 1;
    rotation();
  }

  void rotation() {
    constexpr std::string_view kKey = "context_parallel_rotate_method";
    Section& section = section_of(kKey);
    const auto method = section.map().string(kKey);
    const std::string name = core::canonical_name(method.value_or("allgather"));
    if (name != "allgather" && name != "alltoall")
      return section.map().error(kKey, Errc::out_of_range, "'" + method->substr(0, kShown) + "' is no method", "allgather, alltoall");
    run_.cp_algorithm = name == "alltoall" ? CpAlgorithm::ring : CpAlgorithm::all_gather;
    run_.origins["cp_algorithm"] = {method ? Origin::Kind::file : Origin::Kind::profile, section.where(kKey)};
  }

  /// dp = replicas x shards; -1 shards over whatever the other degrees leave.
  void world() {
    constexpr std::string_view kShard = "data_parallel_shard_degree", kReplicate = "data_parallel_replicate_degree";
    Section& section = section_of(kShard);
    const std::int64_t replicas = degree(kReplicate).value_or(1);
    std::int64_t shard = degree(kShard, true).value_or(-1);
    const auto product = [](std::initializer_list<std::int64_t> factors) {
      std::optional<std::int64_t> all = 1;
      for (const std::int64_t factor : factors) all = all ? core::multiply(*all, factor) : all;
      return all && *all <= (std::int64_t{1} << 30) ? all : std::nullopt;
    };
    const auto inner = product({replicas, *run_.tp, *run_.pp, *run_.cp});
    if (!inner) return section.map().error(kShard, Errc::out_of_range, "the degrees multiply to more devices than any cluster has");
    if (shard == -1) {
      if (!options_.devices) return sharding(std::nullopt, replicas);
      if (*options_.devices % *inner != 0)
        return section.map().error(kShard, Errc::conflict,
                                   std::to_string(*options_.devices) + " devices are no multiple of replicas x tp x pp x cp = " + std::to_string(*inner));
      shard = *options_.devices / *inner;
    }
    const auto devices = product({*inner, shard});
    if (!devices) return section.map().error(kShard, Errc::out_of_range, "the degrees multiply to more devices than any cluster has");
    if (options_.devices && *options_.devices != *devices)
      return section.map().error(kShard, Errc::conflict,
                                 "the degrees multiply to " + std::to_string(*devices) + ", the run has " + std::to_string(*options_.devices) + " devices",
                                 "-1 takes what the other degrees leave");
    state(run_, "devices", &RunSpec::devices, devices, section.where(kShard));
    state(run_, "dp", &RunSpec::dp, std::optional<std::int64_t>(replicas * shard), section.where(kShard));
    sharding(shard, replicas);
  }

  /// FSDP over shards x cp; with one of them there is nothing to shard.
  void sharding(std::optional<std::int64_t> shard, std::int64_t replicas) {
    constexpr std::string_view kKey = "fsdp_reshard_after_forward";
    Section& section = section_of(kKey);
    const ConfigNode* const node = section.map().child(kKey);
    bool reshard = *run_.pp == 1;  // "default": kept gathered between the micro-batches of a pipeline
    if (node != nullptr) {
      const std::string word = core::canonical_name(node->text);
      if (word == "always" || as_boolean(*node) == true) {
        reshard = true;
      } else if (word == "never" || as_boolean(*node) == false) {
        reshard = false;
      } else if (word != "default") {
        section.map().error(kKey, Errc::out_of_range, "'" + node->text.substr(0, kShown) + "' is not default, always or never");
      }
    }
    const auto where = section_of("data_parallel_shard_degree").where("data_parallel_shard_degree");
    const ZeroLevel sharded = reshard ? ZeroLevel::parameters : ZeroLevel::gradients;
    if (!shard) {
      if (replicas > 1)
        section_of("data_parallel_replicate_degree").map().error("data_parallel_replicate_degree", Errc::missing_field,
                                                                 "how many ranks share a replica follows from the number of devices", "-d N");
      run_.zero = sharded;
    } else {
      const std::int64_t ranks = *shard * *run_.cp;
      state(run_, "optimizer_shard", &RunSpec::optimizer_shard, std::optional<std::int64_t>(ranks), where);
      run_.zero = ranks == 1 ? ZeroLevel::none : sharded;
    }
    run_.origins["zero"] = {Origin::Kind::file, node != nullptr ? section.where(kKey) : where};
  }

  [[nodiscard]] std::optional<double> width(std::string_view key) {
    const auto name = training_.map().string(key);
    if (!name) return std::nullopt;
    const auto bytes = dtype_bytes(*name);
    if (!bytes) training_.map().error(key, Errc::out_of_range, "unknown data type '" + name->substr(0, kShown) + "'", "float32, bfloat16, float16");
    return bytes;
  }

  void widths() {
    constexpr double kWide = 4;
    run_.param_bytes = width("dtype").value_or(kWide);
    run_.origins["param_bytes"] = {Origin::Kind::file, training_.where("dtype")};
    const auto compute = training_.map().string("mixed_precision_param");
    const auto dtype = activation_dtype(compute.value_or("bfloat16"));
    if (!dtype) training_.map().error("mixed_precision_param", Errc::out_of_range, "unknown data type '" + compute->substr(0, kShown) + "'", "bfloat16, float32");
    state(run_, "compute_dtype", &RunSpec::compute_dtype, dtype, training_.where("mixed_precision_param"));
    if (const auto reduce = width("mixed_precision_reduce"); reduce && *reduce != kWide)
      findings_.warn(Errc::unsupported, training_.where("mixed_precision_reduce"), "gradients are priced as reduced in float32");
    if (training_.map().boolean("enable_cpu_offload").value_or(false))
      findings_.warn(Errc::unsupported, training_.where("enable_cpu_offload"), "offload to the host is not priced: parameters and states are counted on the device");
    if (section_of("disable_loss_parallel").map().boolean("disable_loss_parallel").value_or(false) && *run_.tp > 1)
      findings_.warn(Errc::unsupported, section_of("disable_loss_parallel").where("disable_loss_parallel"), "the loss is priced as sharded over the tensor parallel ranks");
    const auto name = optimizer_.map().string("name");
    const auto known = optimizer_of_name(name.value_or("AdamW"));
    run_.optimizer = known.value_or(OptimizerKind::adamw);
    run_.origins["optimizer"] = {!known ? Origin::Kind::fallback : name ? Origin::Kind::file : Origin::Kind::profile, optimizer_.where("name")};
    if (!known) findings_.warn(Errc::unsupported, optimizer_.where("name"), unknown_optimizer(*name));
    run_.flash_attention = true;  // scaled dot product attention
  }

  /// What the trainer itself takes where the file says nothing: known, not assumed, but said.
  void own_default(Section& section, std::string_view key, const std::string& value) {
    findings_.note(section.where(key), "is not stated: " + value + ", the trainer's own default");
  }

  void batch() {
    if (!training_.map().has("seq_len")) own_default(training_, "seq_len", std::to_string(kDefaultSequence));
    state(run_, "seq_length", &RunSpec::seq_length, std::optional(training_.map().positive("seq_len").value_or(kDefaultSequence)), training_.where("seq_len"));
    const std::string_view local_key = training_.key({"local_batch_size", "batch_size"});
    if (!training_.map().has(local_key)) own_default(training_, local_key, std::to_string(kDefaultLocalBatch));
    const std::int64_t local = training_.map().positive(local_key).value_or(kDefaultLocalBatch);
    const auto where = training_.where(local_key);
    std::int64_t size = local, number = 1;
    if (*run_.pp > 1) {
      constexpr std::string_view kSize = "pipeline_parallel_microbatch_size", kNumber = "pipeline_parallel_microbatches";
      Section& section = section_of(section_of(kSize).map().has(kSize) ? kSize : kNumber);
      size = section.map().positive(kSize).value_or(1);
      // The older key counts micro-batches, by default one per stage.
      if (const auto count = section.map().positive(kNumber); count && !section.map().has(kSize)) {
        if (local % *count != 0) return section.map().error(kNumber, Errc::conflict, std::to_string(local) + " sequences do not split into " + std::to_string(*count) + " micro-batches");
        size = local / *count;
      }
      if (local % size != 0)
        return section.map().error(kSize, Errc::conflict, "does not divide the local batch of " + std::to_string(local) + " sequences");
      number = local / size;
    }
    const auto stated = training_.map().integer("global_batch_size");
    if (stated && *stated > 0) {
      // 0 where the ranks are left to the search, or where the product is beyond any batch.
      const std::int64_t round = run_.dp ? core::multiply(local, *run_.dp).value_or(0) : 0;
      if (round > 0 && *stated % round != 0)
        return training_.map().error("global_batch_size", Errc::conflict,
                                     std::to_string(*stated) + " is no multiple of local batch x data-parallel ranks = " + std::to_string(round));
      state(run_, "global_batch_size", &RunSpec::global_batch_size, stated, training_.where("global_batch_size"));
      if (round > 0 && *stated > round) {
        number = *stated / round * number;
        if (*run_.pp > 1)
          findings_.warn(Errc::unsupported, training_.where("global_batch_size"), "accumulation steps are priced as further micro-batches of one step");
      }
    } else if (stated && *stated != -1) {
      training_.map().error("global_batch_size", Errc::out_of_range, "must be at least 1, or -1 for local batch x data-parallel ranks, is " + std::to_string(*stated));
    }
    state(run_, "micro_batch_size", &RunSpec::micro_batch_size, std::optional(size), where);
    if (run_.dp || !run_.global_batch_size) state(run_, "micro_batch_num", &RunSpec::micro_batch_num, std::optional(number), where);
    const auto per_rank = core::multiply(size, number);
    const auto all = per_rank && run_.dp ? core::multiply(*per_rank, *run_.dp) : std::nullopt;
    if (!run_.global_batch_size && all) state(run_, "global_batch_size", &RunSpec::global_batch_size, all, where);
    if (number < *run_.pp)
      findings_.warn(Errc::conflict, where, std::to_string(number) + " micro-batches for " + std::to_string(*run_.pp) + " stages: the pipeline never fills");
  }

  void pipeline() {
    constexpr std::string_view kSchedule = "pipeline_parallel_schedule", kLayers = "pipeline_parallel_layers_per_stage", kOlderParts = "module_fqns_per_model_part", kNewerParts = "pipeline_parallel_module_fqns_per_model_part",
                               kFirst = "pipeline_parallel_first_stage_less_layers", kLast = "pipeline_parallel_last_stage_less_layers";
    Section& section = section_of(kSchedule);
    const std::string_view kParts = section_of(kNewerParts).map().has(kNewerParts) ? kNewerParts : kOlderParts;
    const auto name = section.map().string(kSchedule);
    const auto* const word = torchtitan::find_schedule_word(name.value_or("1F1B"));
    torchtitan::StageRequest request;
    request.layers = model_.spec.num_hidden_layers.value_or(0);
    request.pp = *run_.pp;
    const auto less = [this](std::string_view key) {
      MapReader& map = section_of(key).map();
      const auto value = map.integer(key);
      if (value && (*value < 0 || *value > kMostDegree)) map.error(key, Errc::out_of_range, "must be at least 0, is " + std::to_string(*value));
      return std::clamp<std::int64_t>(value.value_or(1), 0, kMostDegree);
    };
    request.less_first = less(kFirst);
    request.less_last = less(kLast);
    request.layers_per_stage = degree(kLayers);
    if (word == nullptr)
      return section.map().error(kSchedule, Errc::out_of_range, "unknown schedule '" + name->substr(0, kShown) + "'", core::name_hint(*name, torchtitan::schedule_names()));
    request.schedule = *word;
    const ConfigNode* const parts = section_of(kParts).map().child(kParts);
    section_of("pipeline_parallel_split_points").map().ignore({"pipeline_parallel_split_points"});
    if (*run_.pp == 1) return;
    if (!word->exact) findings_.warn(Errc::unsupported, section.where(kSchedule), "this schedule is priced as Interleaved1F1B");
    state(run_, "schedule", &RunSpec::schedule, std::optional(word->schedule), section.where(kSchedule));
    constexpr std::int64_t kMostLayers = 1 << 16;
    if (request.layers < 1 || request.layers > kMostLayers || *run_.pp > kMostLayers) return;  // refused as a whole later
    std::string why;
    const auto stages = parts != nullptr ? stated_parts(*parts, why) : torchtitan::split_stages(request, why);
    if (stages.empty()) {
      Section& place = section_of(parts != nullptr ? kParts : kLayers);
      const bool stated = parts != nullptr || request.layers_per_stage;
      return (stated ? place : section).map().error(parts != nullptr ? kParts : request.layers_per_stage ? kLayers : "pipeline_parallel_degree", Errc::conflict, why);
    }
    const auto where = section_of(parts != nullptr ? kParts : "pipeline_parallel_degree").where(parts != nullptr ? kParts : "pipeline_parallel_degree");
    state(run_, "vpp", &RunSpec::vpp, std::optional(static_cast<std::int64_t>(stages.size()) / *run_.pp), section.where(kSchedule));
    run_.layers_per_chunk = torchtitan::per_chunk(stages, *run_.pp);
    run_.origins["layers_per_chunk"] = {Origin::Kind::file, where};
  }

  /// Lists of module names, one per virtual stage: "layers.7" is a layer.
  std::vector<std::int64_t> stated_parts(const ConfigNode& parts, std::string& why) {
    std::vector<std::int64_t> out;
    std::int64_t sum = 0;
    for (const auto& part : parts.items) {
      std::int64_t layers = 0;
      for (const auto& name : part.items) layers += name.text.starts_with("layers.") ? 1 : 0;
      out.push_back(layers);
      sum += layers;
    }
    const std::int64_t wanted = model_.spec.num_hidden_layers.value_or(0);
    if (sum != wanted) why = "the parts hold " + std::to_string(sum) + " layers, the model has " + std::to_string(wanted);
    if (out.empty() || static_cast<std::int64_t>(out.size()) % *run_.pp != 0)
      why = std::to_string(out.size()) + " parts are no multiple of pp " + std::to_string(*run_.pp);
    return why.empty() ? out : std::vector<std::int64_t>{};
  }

  void recompute() {
    MapReader& map = checkpointing_.map();
    const auto mode = map.string("mode");
    const ConfigNode* const option = map.child("selective_ac_option");
    const std::string word = core::canonical_name(mode.value_or("selective"));
    if (!mode) own_default(checkpointing_, "mode", "selective");
    const auto where = checkpointing_.where("mode");
    if (word == "none") return state(run_, "recompute", &RunSpec::recompute, std::optional(Recompute::off), where);
    if (word == "full") return state(run_, "recompute", &RunSpec::recompute, std::optional(Recompute::full), where);
    if (word == "memory_budget") {
      findings_.warn(Errc::unsupported, where, "memory_budget is priced as selective recompute");
    } else if (word != "selective") {
      return map.error("mode", Errc::out_of_range, "'" + mode->substr(0, kShown) + "' is not none, selective, full or memory_budget");
    }
    const std::string text = option == nullptr ? "2" : option->text;
    if (word == "memory_budget" || core::canonical_name(text) == "op")
      return state(run_, "recompute", &RunSpec::recompute, std::optional(Recompute::selective), where);
    const auto step = core::parse_integer(text);
    if (!step || *step < 1)
      return map.error("selective_ac_option", Errc::out_of_range, "'" + text.substr(0, kShown) + "' is neither op nor a number of layers");
    if (option == nullptr) own_default(checkpointing_, "selective_ac_option", "every second layer");
    every_nth_layer(*step, option == nullptr ? where : option->where);
  }

  /// Each model part counts its own layers from 1 and recomputes the n-th, 2n-th, ... in full.
  void every_nth_layer(std::int64_t step, const SourceRef& where) {
    state(run_, "recompute", &RunSpec::recompute, std::optional(Recompute::full), where);
    if (step == 1) return;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(std::min<std::int64_t>(*run_.pp, kMostDegree)), 0);
    if (run_.layers_per_chunk.empty()) {
      if (*run_.pp > 1) return;  // there is no split: refused already
      counts.front() = model_.spec.num_hidden_layers.value_or(0) / step;
    }
    for (const auto& chunk : run_.layers_per_chunk)
      for (std::size_t stage = 0; stage < chunk.size(); ++stage) counts[stage] += chunk[stage] / step;
    run_.full_recompute_layers = std::move(counts);
    run_.origins["full_recompute_layers"] = {Origin::Kind::file, where};
  }

  /// Compilation and low-precision products are features of the profile.
  void kernels() {
    const bool compiled = compile_.map().boolean("enable").value_or(false) || training_.map().boolean("compile").value_or(false);
    const ConfigNode* const parts = compile_.map().child("components");
    bool model_too = parts == nullptr;
    if (parts != nullptr)
      for (const auto& part : parts->items) model_too = model_too || part.text == "model";
    run_.framework_version = compiled && model_too ? "compiled" : "eager";
    for (Section* const section : {&parallel_, &experimental_})
      if (section->map().boolean("enable_async_tensor_parallel").value_or(false) && *run_.tp > 1) run_.features = {"async_tp"};
    low_precision();
  }

  void low_precision() {
    const ConfigNode* const converters = find_path(root_, "model.converters");
    bool found = find_path(root_, "float8.enable_float8_linear") != nullptr && as_boolean(*find_path(root_, "float8.enable_float8_linear")) == true;
    SourceRef where = root_.where;
    if (converters != nullptr)
      for (const auto& item : converters->items) {
        const std::string name = core::canonical_name(item.text);
        if (name.find("float8") == std::string::npos && name.find("mx") == std::string::npos) continue;
        found = true;
        where = item.where;
      }
    if (!found) return;
    state(run_, "gemm_dtype", &RunSpec::gemm_dtype, std::optional(Dtype::fp8), where);
    findings_.note(where, "every large matrix product is priced in fp8, whatever filters keep out of it");
  }

  void report_unread() {
    training_.map().ignore({"steps", "max_norm", "deterministic", "seed", "gc_freq", "gc_debug", "dataset", "dataset_path", "enable_cpu_offload", "warmup_steps",
                            "mixed_precision_param", "enable_float8_linear", "debug_moe_force_load_balance", "data_parallel_type"});
    parallel_.map().ignore({"enable_compiled_autograd", "pipeline_parallel_schedule_csv", "pipeline_parallel_expert_parallel_overlap"});
    experimental_.map().ignore({"custom_import", "custom_args_module"});
    checkpointing_.map().ignore({"per_op_sac_force_recompute_mm_shapes_by_fqns", "early_stop", "memory_budget", "visualize_memory_budget_pareto",
                                 "preserve_rng_state", "determinism_check", "debug"});
    for (Section* const section : {&training_, &parallel_, &experimental_, &checkpointing_}) section->finish();
  }

  static constexpr std::size_t kShown = 60;
  const ConfigNode& root_;
  const torchtitan::Model& model_;
  const ReadOptions& options_;
  Findings& findings_;
  Section training_, parallel_, experimental_, checkpointing_, optimizer_, compile_;
  RunSpec run_;
};

}  // namespace

Result<Request> read_torchtitan(const ConfigNode& root, const std::string&, const DataStore& data, const ReadOptions& options) {
  Findings findings;
  Section section(root, "model", findings);
  const auto model = torchtitan::read_model(root, section, data, findings);
  section.map().ignore({"tokenizer_path", "hf_assets_path", "converters", "norm_type", "print_after_conversion", "custom_import"});
  section.finish();
  Request out;
  out.run = TitanReader(root, model, options, findings).read();
  if (model.found) add_model_problems(model.spec, section.node(), model.places, findings);
  sort_by_place(findings.problems);
  if (!findings.problems.empty()) return Error(without_repeats(std::move(findings.problems)));
  out.model = model.spec;
  sort_by_place(findings.notes);
  out.notes = std::move(findings.notes);
  return out;
}

}  // namespace nd::formats
