// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/text.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"

namespace nd::formats {
namespace {

constexpr std::int64_t kOne = 1;

/// Words that leave a value to another file.
bool is_auto(const ConfigNode* node) { return node != nullptr && core::canonical_name(node->text) == "auto"; }

/// A DeepSpeed configuration, the whole document or a section of another one.
void put_deepspeed(StrategyEditor& file, const std::string& section, const ResolvedStrategy& s) {
  const ParallelConfig& c = s.config;
  const auto below = [&section](const char* name) { return section.empty() ? std::string(name) : section + "." + name; };
  file.put(below("zero_optimization"), {"stage"}, static_cast<std::int64_t>(c.zero), std::int64_t{0});
  if (c.zero != ZeroLevel::none && (c.op != c.dp * c.cp || file.stated(below("zero_optimization"), {"mics_shard_size"}) != nullptr))
    file.put(below("zero_optimization"), {"mics_shard_size"}, std::int64_t{c.op});
  // Inside training arguments "auto" takes the arguments' own.
  const auto put = [&](std::string_view key, std::int64_t value) {
    if (section.empty() || !is_auto(file.stated(section, {key}))) file.put(section, {key}, value);
  };
  put("train_micro_batch_size_per_gpu", c.micro_batch_size);
  put("gradient_accumulation_steps", c.micro_batch_num);
  const ConfigNode* const total = file.stated(section, {"train_batch_size"});
  if (total != nullptr && !is_auto(total)) file.put(section, {"train_batch_size"}, s.global_batch_size);
  if (c.pp > 1 || file.stated(below("pipeline"), {"stages"}) != nullptr) file.put(below("pipeline"), {"stages"}, std::int64_t{c.pp});
  if (c.tp > 1 || file.stated(below("tensor_parallel"), {"autotp_size"}) != nullptr) file.put(below("tensor_parallel"), {"autotp_size"}, std::int64_t{c.tp});
  if (c.cp > 1 || file.stated(section, {"sequence_parallel_size"}) != nullptr) file.put(section, {"sequence_parallel_size"}, std::int64_t{c.cp});
  if (file.stated(below("pipeline"), {"activation_checkpoint_interval"}) != nullptr && c.recompute != Recompute::selective)
    file.put(below("pipeline"), {"activation_checkpoint_interval"}, std::int64_t{c.recompute == Recompute::full ? 1 : 0});
}

void put_fsdp(StrategyEditor& file, const ResolvedStrategy& s) {
  const ParallelConfig& c = s.config;
  constexpr std::string_view kFsdp = "fsdp_config";
  const ConfigNode* const strategy = file.stated(kFsdp, {"fsdp_sharding_strategy"});
  const ConfigNode* const version = file.stated(kFsdp, {"fsdp_version"});
  const bool second = strategy == nullptr && version != nullptr && as_integer(*version).value_or(1) >= 2;
  const bool replicas = c.zero != ZeroLevel::none && c.op < c.dp;
  if (second && c.zero != ZeroLevel::none) {
    file.put(kFsdp, {"fsdp_reshard_after_forward"}, c.zero == ZeroLevel::parameters, true);
  } else {
    struct Name {
      ZeroLevel zero;
      bool replicas;
      std::int64_t number;
      const char* name;
    };
    constexpr std::array<Name, 5> kNames{{{ZeroLevel::parameters, false, 1, "FULL_SHARD"},
                                          {ZeroLevel::gradients, false, 2, "SHARD_GRAD_OP"},
                                          {ZeroLevel::none, false, 3, "NO_SHARD"},
                                          {ZeroLevel::parameters, true, 4, "HYBRID_SHARD"},
                                          {ZeroLevel::gradients, true, 5, "HYBRID_SHARD_ZERO2"}}};
    for (const auto& one : kNames) {
      if (one.zero != c.zero || one.replicas != replicas) continue;
      if (strategy != nullptr && as_integer(*strategy)) file.put(kFsdp, {"fsdp_sharding_strategy"}, one.number);
      else file.put(kFsdp, {"fsdp_sharding_strategy"}, std::string(one.name), std::string("FULL_SHARD"));
    }
  }
  file.put(kFsdp, {"fsdp_activation_checkpointing"}, c.recompute == Recompute::full, c.recompute == Recompute::full);
}

void put_accelerate(StrategyEditor& file, const ResolvedStrategy& s) {
  const ParallelConfig& c = s.config;
  file.put("", {"num_processes"}, s.devices);
  if (const ConfigNode* const steps = file.stated("", {"gradient_accumulation_steps"}); steps != nullptr && !is_auto(steps))
    file.put("", {"gradient_accumulation_steps"}, std::int64_t{c.micro_batch_num});
  const ConfigNode* const type = file.stated("", {"distributed_type"});
  const std::string word = type == nullptr ? std::string() : core::canonical_name(type->text);
  if (word == "fsdp") put_fsdp(file, s);
  if (word == "deepspeed") {
    file.put("deepspeed_config", {"zero_stage"}, static_cast<std::int64_t>(c.zero), std::int64_t{2});
    file.put("deepspeed_config", {"gradient_accumulation_steps"}, std::int64_t{c.micro_batch_num});
    file.put("deepspeed_config", {"train_micro_batch_size_per_gpu"}, std::int64_t{c.micro_batch_size});
  }
  if (word != "megatron_lm") return;
  constexpr std::string_view kMegatron = "megatron_lm_config";
  file.put(kMegatron, {"megatron_lm_tp_degree"}, std::int64_t{c.tp}, kOne);
  file.put(kMegatron, {"megatron_lm_pp_degree"}, std::int64_t{c.pp}, kOne);
  file.put(kMegatron, {"megatron_lm_num_micro_batches"}, std::int64_t{c.micro_batch_num}, kOne);
  file.put(kMegatron, {"megatron_lm_sequence_parallelism"}, c.sequence_parallel, false);
  file.put(kMegatron, {"megatron_lm_recompute_activations"}, c.recompute == Recompute::selective, false);
  file.put(kMegatron, {"megatron_lm_use_distributed_optimizer"}, c.zero != ZeroLevel::none, false);
}

void put_trainer(StrategyEditor& file, const ResolvedStrategy& s) {
  const ParallelConfig& c = s.config;
  file.put("", {"per_device_train_batch_size"}, std::int64_t{c.micro_batch_size});
  file.put("", {"gradient_accumulation_steps"}, std::int64_t{c.micro_batch_num}, kOne);
  file.put("", {"gradient_checkpointing"}, c.recompute == Recompute::full, false);
  if (const ConfigNode* const inner = file.stated("", {"deepspeed"}); inner != nullptr && inner->is_mapping()) put_deepspeed(file, "deepspeed", s);
  for (const char* const key : {"max_seq_length", "max_seq_len", "max_length", "model_max_length", "cutoff_len", "sequence_len", "block_size"})
    if (file.stated("", {key}) != nullptr) return file.put("", {key}, s.seq_length);
}

template <class Put>
Result<std::vector<ResolvedFile>> write_with(const Original& original, const Put& put) {
  auto file = edit(original);
  if (!file) return file.error();
  put(*file);
  return file->finish(original);
}

}  // namespace

Result<std::vector<ResolvedFile>> write_deepspeed(const Original& original, const ResolvedStrategy& strategy) {
  return write_with(original, [&](StrategyEditor& file) { put_deepspeed(file, {}, strategy); });
}

Result<std::vector<ResolvedFile>> write_accelerate(const Original& original, const ResolvedStrategy& strategy) {
  return write_with(original, [&](StrategyEditor& file) { put_accelerate(file, strategy); });
}

Result<std::vector<ResolvedFile>> write_hf_trainer(const Original& original, const ResolvedStrategy& strategy) {
  return write_with(original, [&](StrategyEditor& file) { put_trainer(file, strategy); });
}

Result<std::vector<ResolvedFile>> write_search_config(const Original& original, const ResolvedStrategy& strategy) {
  return write_with(original, [&](StrategyEditor& file) {
    const ParallelConfig& c = strategy.config;
    for (const auto& [key, value] : {std::pair<std::string_view, int>{"dp", c.dp}, {"fsdp", c.op}, {"tp", c.tp}, {"pp", c.pp}, {"cp", c.cp}, {"ep", c.ep}, {"etp", c.etp},
                                     {"micro_batch_num", c.micro_batch_num}})
      file.put("parallelism", {key}, std::int64_t{value}, key == "etp" ? std::optional<WrittenValue>(kOne) : std::nullopt);
    file.put("model", {"local_batch_size"}, std::int64_t{c.micro_batch_size}, kOne);
    file.put("model", {"max_position_embeddings", "seq_length"}, strategy.seq_length);
    file.put("constraint", {"global_batch_size"}, strategy.global_batch_size);
    file.put("pp_config", {"pp_interleave_num"}, std::int64_t{c.vpp}, kOne);
    if (c.tp > 1) file.put("model", {"use_seq_parallel"}, c.sequence_parallel, true);
    file.editor().remove("parallelism.recompute");
    file.put_recompute("", {"recompute"}, c.recompute, "off");
    if (file.stated("", {"recompute"}) == nullptr) file.put("", {"recompute"}, std::string(to_text(c.recompute)));
  });
}

}  // namespace nd::formats
