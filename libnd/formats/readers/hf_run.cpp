// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/hf_run.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/adapters.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {
namespace {

constexpr std::size_t kShown = 60;
constexpr std::int64_t kMostDegree = 1 << 20;

/// A file named in another one.
std::string beside(const std::string& path, const std::string& named) {
  return (std::filesystem::path(path).parent_path() / named).lexically_normal().string();
}

bool is_on(const ConfigNode* node) { return node != nullptr && as_boolean(*node) == true; }

/// Whether an "offload_*" section or word moves anything off the device.
bool offloads(const ConfigNode* node) {
  if (node == nullptr || node->is_null()) return false;
  if (node->is_mapping()) return offloads(node->find("device"));
  const std::string word = core::canonical_name(node->text);
  return word != "none" && word != "false" && !word.empty() && !(as_boolean(*node) == false);
}

}  // namespace

void HfRunReader::not_priced(const SourceRef& where, const std::string& what) {
  findings_.warn(Errc::unsupported, where, what + " is not priced: everything is counted on the device");
}

void HfRunReader::set(Count& field, const Count& value, const SourceRef& where, const char* what) {
  if (!value) return;
  if (field && *field != *value)
    findings_.problems.push_back(make_diagnostic(Errc::conflict, where, std::string(what) + " is " + std::to_string(*value) + " here and " + std::to_string(*field) + " in another file or key",
                                                 "keep one of the two"));
  field = value;
}

std::optional<std::int64_t> HfRunReader::count_or_auto(MapReader& map, std::string_view key) {
  const ConfigNode* const node = map.child(key);
  if (node == nullptr || core::canonical_name(node->text) == "auto") return std::nullopt;
  return map.positive(key);
}

void HfRunReader::engine(Engine engine, const SourceRef& where) {
  if (engine_ != Engine::plain && engine != Engine::plain && engine_ != engine)
    findings_.problems.push_back(make_diagnostic(Errc::conflict, where, "FSDP, DeepSpeed and Megatron-LM exclude each other", "keep one of them"));
  if (engine != Engine::plain) engine_ = engine;
}

void HfRunReader::zero(ZeroLevel level, const SourceRef& where) {
  if (run_.zero && *run_.zero != level)
    findings_.problems.push_back(make_diagnostic(Errc::conflict, where, "how the model is sharded is stated twice and differently", "keep one of the two"));
  state(run_, "zero", &RunSpec::zero, std::optional(level), where);
}

void HfRunReader::sharding_word(const std::string& word, const SourceRef& where) {
  // torch.distributed.fsdp.ShardingStrategy by number or name.
  struct Word {
    std::string_view number, name;
    ZeroLevel level;
    bool within_node;
  };
  constexpr std::array<Word, 5> kWords{{{"1", "full_shard", ZeroLevel::parameters, false},
                                        {"2", "shard_grad_op", ZeroLevel::gradients, false},
                                        {"3", "no_shard", ZeroLevel::none, false},
                                        {"4", "hybrid_shard", ZeroLevel::parameters, true},
                                        {"5", "hybrid_shard_zero2", ZeroLevel::gradients, true}}};
  const std::string wanted = core::canonical_name(word);
  std::vector<std::string> names;
  for (const auto& one : kWords) {
    names.emplace_back(one.name);
    if (wanted != one.number && wanted != one.name) continue;
    zero(one.level, where);
    if (!one.within_node) return;
    // Shards within a node, replicas across them.
    if (!run_.devices || !machines_ || *run_.devices % *machines_ != 0)
      return findings_.warn(Errc::missing_field, where, "hybrid sharding needs the devices of a node, which are not known; sharding over all ranks is assumed",
                            "state num_processes and num_machines");
    shard_ = *run_.devices / *machines_;
    return;
  }
  findings_.problems.push_back(make_diagnostic(Errc::out_of_range, where, "'" + word.substr(0, kShown) + "' is no sharding strategy", core::name_hint(wanted, names)));
}

void HfRunReader::precision(const std::string& word, const SourceRef& where) {
  const std::string name = core::canonical_name(word);
  mixed_stated_ = true;
  mixed_where_ = where;
  if (name == "no" || name == "false") return;
  if (name == "fp8") {
    mixed_ = Dtype::bf16;
    return state(run_, "gemm_dtype", &RunSpec::gemm_dtype, std::optional(Dtype::fp8), where);
  }
  const auto dtype = activation_dtype(word);
  if (!dtype || *dtype == Dtype::fp32)
    return findings_.problems.push_back(make_diagnostic(Errc::out_of_range, where, "'" + word.substr(0, kShown) + "' is no mixed precision", "no, fp16, bf16, fp8"));
  mixed_ = dtype;
}

void HfRunReader::optimizer(const std::string& name, const SourceRef& where) {
  const std::string word = core::canonical_name(name);
  const auto has = [&word](std::string_view part) { return word.find(part) != std::string::npos; };
  const auto known = optimizer_of_name(name);
  if (!known) findings_.warn(Errc::unsupported, where, unknown_optimizer(name));
  if (has("paged")) findings_.note(where, "paging of the states is not priced: they are counted on the device");
  run_.optimizer = known.value_or(OptimizerKind::adamw);
  run_.origins["optimizer"] = {known ? Origin::Kind::file : Origin::Kind::fallback, where};
}

void HfRunReader::recompute(Recompute mode, const SourceRef& where) {
  if (run_.recompute && *run_.recompute >= mode) return;
  state(run_, "recompute", &RunSpec::recompute, std::optional(mode), where);
}

void HfRunReader::any(const ConfigNode& root, const std::string& path) {
  const auto has = [&root](std::string_view key) { return root.find(key) != nullptr; };
  if (has("distributed_type") || has("compute_environment") || has("fsdp_config") || has("deepspeed_config")) return accelerate(root, path);
  if (has("zero_optimization") || has("train_micro_batch_size_per_gpu") || has("train_batch_size")) return deepspeed(root);
  trainer(root, path);
}

void HfRunReader::trainer(const ConfigNode& root, const std::string& path) {
  Section args(root, findings_);
  MapReader& map = args.map();
  set(micro_, map.positive("per_device_train_batch_size"), map.where("per_device_train_batch_size"), "the batch of a device");
  if (micro_) micro_where_ = map.where("per_device_train_batch_size");
  set(accumulation_, count_or_auto(map, "gradient_accumulation_steps"), map.where("gradient_accumulation_steps"), "the number of accumulation steps");
  trainer_seen_ = true;
  accumulation_where_ = map.where("gradient_accumulation_steps");
  const auto length = args.key({"max_seq_length", "max_seq_len", "max_length", "model_max_length", "cutoff_len", "sequence_len", "block_size"});
  if (map.has(length)) state(run_, "seq_length", &RunSpec::seq_length, map.positive(length), map.where(length));
  if (const auto on = map.boolean("gradient_checkpointing")) recompute(*on ? Recompute::full : Recompute::off, map.where("gradient_checkpointing"));
  for (const std::string_view key : {"bf16", "fp16"})
    if (is_on(map.child(key))) precision(std::string(key), map.where(key));
  if (const auto dtype = map.string(args.key({"torch_dtype", "dtype"}))) loaded_ = activation_dtype(*dtype);
  if (const auto name = map.string("optim")) optimizer(*name, map.where("optim"));
  if (const auto kernel = map.string("attn_implementation"))
    state(run_, "flash_attention", &RunSpec::flash_attention, std::optional(core::canonical_name(*kernel) != "eager"), map.where("attn_implementation"));
  for (const std::string_view key : {"use_liger_kernel", "use_liger"})
    if (is_on(map.child(key))) run_.features = {"liger"};
  tuning(args);
  if (is_on(map.child("torch_compile"))) findings_.note(map.where("torch_compile"), "torch.compile is not priced");
  if (const ConfigNode* const words = map.child("fsdp")) {
    std::string all = words->text;
    for (const auto& item : words->items) all += " " + item.text;
    for (const auto& word : core::split(all, ' ')) {
      const std::string name = core::canonical_name(word);
      if (name == "offload") not_priced(words->where, "offload to the host");
      if (name.empty() || name == "auto_wrap" || name == "offload" || name == "false" || name == "true") continue;
      engine(Engine::fsdp, words->where);
      sharding_word(name, words->where);
    }
  }
  if (root.find("fsdp_config") != nullptr && root.find("fsdp_config")->is_mapping()) {
    Section section(root, "fsdp_config", findings_);
    fsdp_config(section);
  }
  if (const ConfigNode* const node = map.child("deepspeed")) {
    if (node->is_mapping()) deepspeed(*node);
    else if (const auto named = as_string(*node)) deepspeed_file(*named, path, node->where);
  }
  map.ignore({"model_name_or_path", "fsdp_config"});
  args.refuse_slips();  // training arguments hold a hundred keys without a price
}

/// TRL switches adapters on by use_peft, LLaMA-Factory by finetuning_type; ranks beside a switch that is off mean nothing.
void HfRunReader::tuning(Section& args) {
  MapReader& map = args.map();
  const auto kind = map.string("finetuning_type");
  const std::string type = core::canonical_name(kind.value_or(""));
  const bool by_switch = map.has("use_peft") || map.has("use_lora"), on = is_on(map.child("use_peft")) || is_on(map.child("use_lora"));
  const auto rank_key = args.key({"lora_rank", "lora_r"});
  const ConfigNode* const rank = map.child(rank_key);
  const bool adapts = kind ? type == "lora" : by_switch ? on : rank != nullptr;
  const auto bits = map.integer("quantization_bit");
  const bool four = is_on(map.child("load_in_4bit")) || bits == 4, eight = is_on(map.child("load_in_8bit")) || bits == 8;
  const bool twice = is_on(map.child("use_bnb_nested_quant")) || is_on(map.child("bnb_4bit_use_double_quant")) ||
                     (bits && !(map.has("double_quantization") && !is_on(map.child("double_quantization"))));
  const auto refuse = [this](const SourceRef& where, const std::string& what) {
    findings_.problems.push_back(make_diagnostic(Errc::unsupported, where, what + " cannot be priced", "full fine-tuning and low-rank adapters (lora) are"));
  };
  if (kind && type != "full" && type != "lora") return refuse(map.where("finetuning_type"), "fine-tuning of type '" + kind->substr(0, kShown) + "'");
  if (!adapts) {
    if (four || eight) refuse(args.node().where, "quantised weights without adapters on them");
    return;
  }
  // LLaMA-Factory's FinetuningArguments.lora_rank is 8, TRL's ModelConfig.lora_r 16.
  const std::int64_t usual = kind ? 8 : 16;
  adapter_where_ = rank != nullptr ? rank->where : kind ? map.where("finetuning_type") : map.where("use_peft");
  adapter_rank_ = map.positive(rank_key).value_or(usual);
  if (rank == nullptr) findings_.warn(Errc::missing_field, adapter_where_, "the rank of the adapters is not stated: " + std::to_string(usual) + ", the trainer's default");
  adapter_targets(map);
  state(run_, "frozen_base", &RunSpec::frozen_base, std::optional(true), adapter_where_);
  // bitsandbytes: 4 bits and a 32-bit constant per 64 weights, or 0.127 bits where the constants are quantised too (QLoRA, section 3).
  constexpr double kFourBit = 0.5 + 4.0 / 64, kFourBitTwice = 0.5 + 0.127 / 8, kEightBit = 1;
  if (four) run_.base_weight_bytes = twice ? kFourBitTwice : kFourBit;
  if (eight) run_.base_weight_bytes = kEightBit;
}

void HfRunReader::adapter_targets(MapReader& map) {
  struct Word {
    std::string_view name, targets;
  };
  constexpr std::array<Word, 11> kWords{{{"q_proj", "q"}, {"k_proj", "k"}, {"v_proj", "v"}, {"o_proj", "o"}, {"qkv_proj", "qkv"}, {"gate_proj", "gate"}, {"up_proj", "up"},
                                         {"down_proj", "fc2"}, {"gate_up_proj", "fc1"}, {"all", "q k v o gate up fc2"}, {"all_linear", "q k v o gate up fc2"}}};
  const std::string_view key = map.has("lora_target") ? "lora_target" : "lora_target_modules";
  const ConfigNode* const stated = map.child(key);
  if (stated == nullptr || stated->is_null()) {
    // LLaMA-Factory adapts every linear layer; PEFT's own table has the query and value projections of Llama-like models.
    const bool factory = map.has("finetuning_type");
    adapter_targets_ = factory ? "q k v o gate up fc2" : "q v";
    findings_.warn(Errc::missing_field, adapter_where_, std::string("which matrices are adapted is not stated: ") + (factory ? "all of them" : "queries and values") + ", the trainer's default");
    return;
  }
  std::vector<std::string> names;
  for (const auto& item : stated->items) names.push_back(item.text);
  if (stated->is_scalar()) names = core::split(stated->text, ',');
  for (const auto& name : names) {
    const std::string wanted = core::canonical_name(core::trim(name));
    const auto* const word = std::find_if(kWords.begin(), kWords.end(), [&wanted](const Word& one) { return one.name == wanted; });
    if (word == kWords.end())
      findings_.problems.push_back(make_diagnostic(Errc::unsupported, stated->where, "adapters on '" + name.substr(0, kShown) + "' cannot be priced",
                                                   "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, all"));
    else adapter_targets_ += (adapter_targets_.empty() ? "" : " ") + std::string(word->targets);
  }
}

void HfRunReader::adapters_of(const ModelSpec& model) {
  if (adapter_rank_ == 0) return;
  const auto refuse = [this](const std::string& why, const std::string& hint) {
    findings_.problems.push_back(make_diagnostic(Errc::unsupported, adapter_where_, why, hint));
  };
  if (!model.hidden_size || !model.num_hidden_layers)
    return refuse("adapters can only be priced with the model they are on", "-y config.json with this file as --train-yaml, or model_name_or_path a folder or preset");
  if (model.num_experts.value_or(0) > 1 || model.kv_lora_rank || !model.layer_types.empty())
    return refuse("adapters on a model with experts, latent attention or mixed layers cannot be priced", "without them, full fine-tuning is priced");
  run_.trained_parameters = adapter_elements(model, adapter_rank_, adapter_targets_);
}

void HfRunReader::deepspeed_file(const std::string& named, const std::string& path, const SourceRef& where) {
  const std::string file = beside(path, named);
  const auto root = read_document(file);
  if (root && root->is_mapping()) return deepspeed(*root);
  findings_.problems.push_back(make_diagnostic(root ? Errc::wrong_type : root.error().code(), where, "the DeepSpeed configuration '" + named.substr(0, 200) + "' cannot be read", "looked for " + file));
  if (!root && root.error().code() != Errc::io)
    findings_.problems.insert(findings_.problems.end(), root.error().diagnostics.begin(), root.error().diagnostics.end());
}

void HfRunReader::fsdp_config(Section& section) {
  MapReader& map = section.map();
  const auto key = [&section](const char* with, const char* without) { return section.key({with, without}); };
  const auto version = map.integer(key("fsdp_version", "version"));
  const auto strategy = key("fsdp_sharding_strategy", "sharding_strategy");
  const ConfigNode* const word = map.child(strategy);
  if (word != nullptr) sharding_word(word->text, word->where);
  const auto reshard = key("fsdp_reshard_after_forward", "reshard_after_forward");
  if (const ConfigNode* const node = map.child(reshard)) {
    if (const auto flag = as_boolean(*node)) zero(*flag ? ZeroLevel::parameters : ZeroLevel::gradients, node->where);
    else if (word == nullptr) sharding_word(node->text, node->where);
  } else if (word == nullptr && !run_.zero) {
    zero(ZeroLevel::parameters, section.node().where);  // FULL_SHARD, and version 2 reshards, unless it is said
  }
  if (version.value_or(1) > 1) findings_.note(map.where(key("fsdp_version", "version")), "FSDP2 is priced with the memory habits of FSDP1");
  for (const char* const offload : {"fsdp_offload_params", "fsdp_cpu_offload", "offload_params", "cpu_offload"})
    if (is_on(map.child(offload))) not_priced(map.where(offload), "offload to the host");
  const auto checkpointing = key("fsdp_activation_checkpointing", "activation_checkpointing");
  if (const auto on = map.boolean(checkpointing)) recompute(*on ? Recompute::full : Recompute::off, map.where(checkpointing));
  section.refuse_slips();
}

void HfRunReader::deepspeed_plugin(Section& section, const std::string& path) {
  MapReader& map = section.map();
  if (const auto file = map.string("deepspeed_config_file")) return deepspeed_file(*file, path, map.where("deepspeed_config_file"));
  if (const auto stage = map.integer("zero_stage")) {
    if (*stage < 0 || *stage > 3) map.error("zero_stage", Errc::out_of_range, "must be from 0 to 3, is " + std::to_string(*stage));
    else zero(static_cast<ZeroLevel>(*stage), map.where("zero_stage"));
  } else {
    constexpr int kDefaultStage = 2;  // accelerate.utils.DeepSpeedPlugin
    zero(static_cast<ZeroLevel>(kDefaultStage), section.node().where);
  }
  set(accumulation_, count_or_auto(map, "gradient_accumulation_steps"), map.where("gradient_accumulation_steps"), "the number of accumulation steps");
  set(micro_, count_or_auto(map, "train_micro_batch_size_per_gpu"), map.where("train_micro_batch_size_per_gpu"), "the batch of a device");
  for (const char* const key : {"offload_optimizer_device", "offload_param_device"})
    if (offloads(map.child(key))) not_priced(map.where(key), "offload to the host");
  map.ignore_rest();
}

void HfRunReader::megatron_plugin(Section& section) {
  MapReader& map = section.map();
  const auto take = [&](const char* field, std::optional<std::int64_t> RunSpec::*member, std::string_view key) {
    if (map.has(key)) state(run_, field, member, map.positive(key), map.where(key));
  };
  take("tp", &RunSpec::tp, "megatron_lm_tp_degree");
  take("pp", &RunSpec::pp, "megatron_lm_pp_degree");
  set(accumulation_, count_or_auto(map, "megatron_lm_num_micro_batches"), map.where("megatron_lm_num_micro_batches"), "the number of micro-batches");
  state(run_, "sequence_parallel", &RunSpec::sequence_parallel, map.boolean("megatron_lm_sequence_parallelism"), map.where("megatron_lm_sequence_parallelism"));
  if (const auto on = map.boolean("megatron_lm_recompute_activations"))
    recompute(*on ? Recompute::selective : Recompute::off, map.where("megatron_lm_recompute_activations"));
  if (const auto on = map.boolean("megatron_lm_use_distributed_optimizer"))
    zero(*on ? ZeroLevel::optimizer : ZeroLevel::none, map.where("megatron_lm_use_distributed_optimizer"));
  map.ignore({"megatron_lm_gradient_clipping"});
  section.finish();
}

void HfRunReader::parallelism_config(Section& section) {
  MapReader& map = section.map();
  const auto degree = [&](const char* name) {
    const auto key = section.key({std::string_view(name).substr(std::string_view("parallelism_config_").size()), name});
    return map.has(key) ? std::pair(map.positive(key), key) : std::pair(std::optional<std::int64_t>(), key);
  };
  for (const char* const name : {"parallelism_config_tp_size", "parallelism_config_cp_size", "parallelism_config_sp_size"})
    if (const auto [value, key] = degree(name); value.value_or(1) > 1)
      map.error(key, Errc::unsupported, "tensor, context and sequence parallelism of Accelerate cannot be priced");
  const auto [shard, shard_key] = degree("parallelism_config_dp_shard_size");
  const auto [replicas, replicas_key] = degree("parallelism_config_dp_replicate_size");
  set(shard_, shard, map.where(shard_key), "the number of shards");
  set(replicas_, replicas, map.where(replicas_key), "the number of replicas");
  map.ignore_rest();
}

void HfRunReader::accelerate(const ConfigNode& root, const std::string& path) {
  Section top(root, findings_);
  MapReader& map = top.map();
  const auto type = map.string("distributed_type");
  const std::string word = core::canonical_name(type.value_or("no"));
  machines_ = map.positive("num_machines");
  state(run_, "devices", &RunSpec::devices, map.positive("num_processes"), map.where("num_processes"));
  if (options_.devices && run_.devices && *options_.devices != *run_.devices) machines_.reset();  // nodes of another cluster
  if (options_.devices) run_.devices = options_.devices;
  if (const ConfigNode* const precise = map.child("mixed_precision")) precision(as_boolean(*precise) == false ? "no" : precise->text, precise->where);
  set(accumulation_, count_or_auto(map, "gradient_accumulation_steps"), map.where("gradient_accumulation_steps"), "the number of accumulation steps");
  Section fsdp(root, "fsdp_config", findings_), zero_plugin(root, "deepspeed_config", findings_), megatron(root, "megatron_lm_config", findings_),
      parallelism(root, "parallelism_config", findings_);
  const auto where = map.where("distributed_type");
  if (word == "fsdp") {
    engine(Engine::fsdp, where);
    fsdp_config(fsdp);
  } else if (word == "deepspeed") {
    engine(Engine::deepspeed, where);
    deepspeed_plugin(zero_plugin, path);
  } else if (word == "megatron_lm") {
    engine(Engine::megatron, where);
    megatron_plugin(megatron);
  } else if (word == "no" || word.substr(0, 6) == "multi_") {
    if (!run_.zero) zero(ZeroLevel::none, where);
  } else {
    map.error("distributed_type", Errc::unsupported, "'" + type->substr(0, kShown) + "' cannot be priced", "NO, MULTI_GPU, MULTI_NPU, FSDP, DEEPSPEED, MEGATRON_LM");
  }
  parallelism_config(parallelism);
  if (is_on(map.child("use_cpu"))) map.error("use_cpu", Errc::unsupported, "training on the processor cannot be priced");
  map.ignore({"compute_environment", "debug", "downcast_bf16", "enable_cpu_affinity", "machine_rank", "main_process_ip", "main_process_port", "main_training_function",
              "rdzv_backend", "same_network", "tpu_env", "tpu_use_cluster", "tpu_use_sudo", "gpu_ids", "dynamo_config", "fsdp_config", "deepspeed_config",
              "megatron_lm_config", "parallelism_config", "fp8_config", "tpu_name", "tpu_zone", "commands", "command_file", "mpirun_config", "ipex_config"});
  top.finish();
}

void HfRunReader::zero_section(Section& section) {
  MapReader& map = section.map();
  const auto stage = map.integer("stage");
  if (stage && (*stage < 0 || *stage > 3)) return map.error("stage", Errc::out_of_range, "must be from 0 to 3, is " + std::to_string(*stage));
  zero(static_cast<ZeroLevel>(stage.value_or(0)), map.where("stage"));
  for (const char* const key : {"offload_optimizer", "offload_param", "cpu_offload", "cpu_offload_params"})
    if (offloads(map.child(key))) not_priced(map.where(key), "offload to the host or a disk");
  const ConfigNode* const mics = map.child("mics_shard_size");
  // -1 is DeepSpeed's own "off".
  if (const auto group = mics == nullptr || as_integer(*mics) == -1 ? std::nullopt : count_or_auto(map, "mics_shard_size")) set(shard_, group, map.where("mics_shard_size"), "the number of shards");
  if (const auto second = count_or_auto(map, "zero_hpz_partition_size"); second.value_or(1) > 1)
    findings_.warn(Errc::unsupported, map.where("zero_hpz_partition_size"), "the second copy of the weights within a node (hpZ) is not priced");
  for (const char* const key : {"zero_quantized_weights", "zero_quantized_gradients"})
    if (is_on(map.child(key))) findings_.warn(Errc::unsupported, map.where(key), "quantised exchange is not priced");
  section.refuse_slips();
}

void HfRunReader::deepspeed(const ConfigNode& root) {
  Section top(root, findings_);
  MapReader& map = top.map();
  engine(Engine::deepspeed, root.where);
  set(micro_, count_or_auto(map, "train_micro_batch_size_per_gpu"), map.where("train_micro_batch_size_per_gpu"), "the batch of a device");
  set(accumulation_, count_or_auto(map, "gradient_accumulation_steps"), map.where("gradient_accumulation_steps"), "the number of accumulation steps");
  set(total_, count_or_auto(map, "train_batch_size"), map.where("train_batch_size"), "the batch of a step");
  micro_where_ = map.where("train_micro_batch_size_per_gpu");
  total_where_ = map.where("train_batch_size");
  Section zeros(root, "zero_optimization", findings_);
  zero_section(zeros);
  for (const std::string_view name : {"bf16", "fp16", "bfloat16"}) {
    Section section(root, name, findings_);
    const ConfigNode* const enabled = section.map().child("enabled");
    if (is_on(enabled)) precision(name == "fp16" ? "fp16" : "bf16", enabled->where);
    if (enabled != nullptr && core::canonical_name(enabled->text) == "auto") mixed_open_ = true;  // the trainer's own switch
    section.map().ignore_rest();
  }
  Section adam(root, "optimizer", findings_), checkpointing(root, "activation_checkpointing", findings_), pipe(root, "pipeline", findings_), autotp(root, "tensor_parallel", findings_);
  if (const auto name = adam.map().string("type")) optimizer(*name, adam.where("type"));
  if (is_on(checkpointing.map().child("cpu_checkpointing"))) not_priced(checkpointing.where("cpu_checkpointing"), "offload of kept activations");
  if (checkpointing.stated() && !run_.recompute)
    findings_.note(checkpointing.node().where, "says how checkpoints are stored, not that any are made: recompute follows from the model's own switch");
  if (const auto stages = count_or_auto(pipe.map(), "stages")) state(run_, "pp", &RunSpec::pp, stages, pipe.where("stages"));
  if (const auto step = pipe.map().integer("activation_checkpoint_interval"))
    recompute(*step > 0 ? Recompute::full : Recompute::off, pipe.where("activation_checkpoint_interval"));
  if (const auto size = count_or_auto(autotp.map(), "autotp_size"); size.value_or(0) > 1) state(run_, "tp", &RunSpec::tp, size, autotp.where("autotp_size"));
  if (const auto size = count_or_auto(map, "sequence_parallel_size"); size.value_or(1) > 1) {
    state(run_, "cp", &RunSpec::cp, size, map.where("sequence_parallel_size"));
    run_.cp_algorithm = CpAlgorithm::ulysses;  // DeepSpeed-Ulysses
  }
  map.ignore({"zero_optimization", "bf16", "fp16", "bfloat16", "optimizer", "activation_checkpointing", "pipeline", "tensor_parallel"});
  top.refuse_slips();  // the loggers' and schedulers' keys have no price
}

void HfRunReader::batches(std::int64_t dp) {
  if (total_ && dp > 0) {
    const auto known = core::multiply(micro_.value_or(1), accumulation_.value_or(1));
    const auto round = known ? core::multiply(*known, dp) : std::nullopt;
    if (!round || *total_ % *round != 0 || (micro_ && accumulation_ && *total_ != *round)) {
      findings_.problems.push_back(make_diagnostic(Errc::conflict, total_where_,
                                                   std::to_string(*total_) + " is not micro-batch x accumulation steps x " + std::to_string(dp) + " data-parallel ranks",
                                                   "micro-batch " + (micro_ ? std::to_string(*micro_) : std::string("not stated")) + ", accumulation " +
                                                       (accumulation_ ? std::to_string(*accumulation_) : std::string("not stated"))));
      return;
    }
    if (micro_ && !accumulation_) accumulation_ = *total_ / *round;
    if (!micro_ && accumulation_) micro_ = *total_ / *round;
  }
  state(run_, "micro_batch_size", &RunSpec::micro_batch_size, micro_, micro_where_);
  if (total_) state(run_, "global_batch_size", &RunSpec::global_batch_size, total_, total_where_);
  if (!micro_ || !accumulation_) return;
  const auto per_rank = core::multiply(*micro_, *accumulation_);
  const auto all = per_rank && dp > 0 ? core::multiply(*per_rank, dp) : std::nullopt;
  state(run_, "micro_batch_num", &RunSpec::micro_batch_num, accumulation_, accumulation_where_.file.empty() ? micro_where_ : accumulation_where_);
  if (all && !total_) state(run_, "global_batch_size", &RunSpec::global_batch_size, all, micro_where_);
}

void HfRunReader::widths() {
  // A frozen base stays in the type it is loaded in: 16 bits where LLaMA-Factory or a quantised load decide, else what is stated.
  if (adapter_rank_ > 0 && !loaded_ && mixed_) loaded_ = mixed_;
  if (adapter_rank_ > 0 && !run_.base_weight_bytes) run_.base_weight_bytes = loaded_ && *loaded_ != Dtype::fp32 ? 2.0 : 4.0;
  if (mixed_) {
    state(run_, "compute_dtype", &RunSpec::compute_dtype, mixed_, mixed_where_);
  } else if (mixed_open_) {
    return;
  } else if (mixed_stated_ || loaded_ || engine_ == Engine::deepspeed) {
    state(run_, "compute_dtype", &RunSpec::compute_dtype, std::optional(loaded_.value_or(Dtype::fp32)), mixed_where_);
  }
  const bool narrow = loaded_ && *loaded_ != Dtype::fp32;
  if (engine_ == Engine::megatron) return;
  if (engine_ == Engine::deepspeed) {
    if (!mixed_ && !narrow) run_.param_bytes = 4.0;  // no 16-bit engine: the weights are the main copy
    return;
  }
  // Autocast keeps fp32 weights, gradients and states; Accelerate raises 16-bit weights to fp32 where FSDP shards them.
  if (mixed_ && (engine_ == Engine::fsdp || !narrow)) run_.features.insert(run_.features.begin(), "autocast");
  if (!mixed_ && !narrow && (mixed_stated_ || loaded_)) run_.param_bytes = 4.0;
}

RunSpec HfRunReader::finish() {
  for (auto* const degree : {&run_.tp, &run_.pp, &run_.cp})
    if (*degree && **degree > kMostDegree) degree->reset();  // beyond any cluster: the devices cannot fit either
  const bool pipeline = run_.pp.value_or(1) > 1 || run_.tp.value_or(1) > 1;
  run_.framework = engine_ == Engine::megatron                ? "megatron-core"
                   : engine_ == Engine::deepspeed && pipeline ? "megatron-deepspeed"
                   : engine_ == Engine::deepspeed             ? "deepspeed-zero3-2021"
                                                              : "hf-trainer";
  if (engine_ == Engine::deepspeed && !run_.flash_attention) run_.flash_attention = true;  // scaled dot product attention of the model code
  if (options_.devices) run_.devices = options_.devices;
  std::int64_t dp = 0;
  if (run_.devices && *run_.devices % inner() == 0) {
    dp = *run_.devices / inner();
    run_.dp = dp;
    if (const auto found = run_.origins.find("devices"); found != run_.origins.end()) run_.origins["dp"] = found->second;
  }
  if (!run_.zero) run_.zero = ZeroLevel::none;
  if (*run_.zero == ZeroLevel::none) run_.optimizer_shard = 1;
  else if (shard_ || (replicas_ && dp > 0)) run_.optimizer_shard = shard_ ? *shard_ * run_.cp.value_or(1) : std::max<std::int64_t>(1, dp / *replicas_);
  if (trainer_seen_ && micro_ && !accumulation_ && !total_) accumulation_ = 1;  // transformers.TrainingArguments
  batches(dp);
  widths();
  return std::move(run_);
}

}  // namespace nd::formats
