// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"

namespace nd::formats {
namespace {

constexpr std::string_view kDegrees = "parallel_config", kModel = "model.model_config", kRecompute = "recompute_config";

using Value = WrittenValue;
constexpr std::int64_t kOne = 1;

bool any(const std::vector<std::vector<std::int64_t>>& chunks) {
  return std::any_of(chunks.begin(), chunks.end(), [](const auto& chunk) {
    return std::any_of(chunk.begin(), chunk.end(), [](std::int64_t count) { return count > 0; });
  });
}

/// hybrid_cp is left where its degrees make it one of the two.
void put_algorithm(StrategyEditor& file, CpAlgorithm algorithm) {
  const ConfigNode* const node = file.stated(kDegrees, {"context_parallel_algo"});
  if (node != nullptr && node->text.find("hybrid") != std::string::npos) return;
  file.put(kDegrees, {"context_parallel_algo"}, std::string(algorithm == CpAlgorithm::ulysses ? "ulysses_cp" : "colossalai_cp"));
}

void degrees(StrategyEditor& file, const ResolvedStrategy& s) {
  const ParallelConfig& c = s.config;
  file.put(kDegrees, {"data_parallel", "data_parallel_size"}, std::int64_t{c.dp}, kOne);
  file.put(kDegrees, {"model_parallel", "tensor_model_parallel_size"}, std::int64_t{c.tp}, kOne);
  file.put(kDegrees, {"pipeline_stage", "pipeline_model_parallel_size"}, std::int64_t{c.pp}, kOne);
  file.put(kDegrees, {"context_parallel", "context_parallel_size"}, std::int64_t{c.cp}, kOne);
  file.put(kDegrees, {"expert_parallel", "expert_model_parallel_size"}, std::int64_t{c.ep}, kOne);
  if (c.cp > 1 && c.cp_algorithm != CpAlgorithm::ring) put_algorithm(file, c.cp_algorithm);
  if (c.tp > 1) file.put(kDegrees, {"use_seq_parallel", "sequence_parallel"}, c.sequence_parallel, false);
  file.put(kModel, {"pp_interleave_num", "virtual_pipeline_model_parallel_size"}, std::int64_t{c.vpp}, kOne);
  const std::string_view experts = file.stated("moe_config", {"expert_model_parallel"}) != nullptr ? "moe_config" : kDegrees;
  if (s.has_experts) file.put(experts, {"expert_model_parallel", "expert_tensor_parallel_size"}, std::int64_t{c.etp}, kOne);
}

void batch(StrategyEditor& file, const ResolvedStrategy& s) {
  file.put("runner_config", {"batch_size"}, std::int64_t{s.config.micro_batch_size});
  // Accumulation steps multiply the micro-batches: kept where they divide.
  std::int64_t number = s.config.micro_batch_num, rounds = 1;
  const ConfigNode* const stated = file.stated("runner_config", {"gradient_accumulation_steps"});
  if (stated != nullptr) rounds = std::max<std::int64_t>(1, as_integer(*stated).value_or(1));
  if (number % rounds == 0) number /= rounds;
  else file.put("runner_config", {"gradient_accumulation_steps"}, kOne);
  file.put(kDegrees, {"micro_batch_num"}, number, kOne);
  file.put(kModel, {"seq_length"}, s.seq_length);
}

void sharding(StrategyEditor& file, const ResolvedStrategy& s) {
  const ParallelConfig& c = s.config;
  const bool on = c.zero != ZeroLevel::none;
  file.put("parallel", {"enable_parallel_optimizer"}, on, false);
  if (!on) return;
  constexpr std::string_view kSharding = "parallel.parallel_optimizer_config";
  file.put(kSharding, {"gradient_accumulation_shard"}, c.zero >= ZeroLevel::gradients, false);
  const ConfigNode* const size = file.stated(kSharding, {"optimizer_weight_shard_size"});
  const bool all = c.op == c.dp && (size == nullptr || as_integer(*size).value_or(0) < 1);  // -1: all of them
  if (!all) file.put(kSharding, {"optimizer_weight_shard_size"}, std::int64_t{c.op});
}

std::string_view schedule_word(Schedule schedule) {
  switch (schedule) {
    case Schedule::gpipe: return "gpipe";
    case Schedule::zb_v: return "zero_bubble_v";
    case Schedule::seq_1f1b: return "seqpipe";
    default: return "1f1b";  // interleaving is 1f1b with pp_interleave_num above 1
  }
}

void pipeline(StrategyEditor& file, const ResolvedStrategy& s) {
  constexpr std::string_view kPipeline = "parallel.pipeline_config";
  if (s.config.pp > 1) {
    file.put(kPipeline, {"pipeline_scheduler"}, std::string(schedule_word(s.config.schedule)), std::string("1f1b"));
    if (s.config.schedule == Schedule::seq_1f1b) file.put(kDegrees, {"seq_split_num"}, std::int64_t{s.config.seq_split}, kOne);
    if (s.config.vpp > 1 && file.stated(kPipeline, {"pipeline_interleave"}) != nullptr) file.put(kPipeline, {"pipeline_interleave"}, true);
  }
  const bool counted = file.stated(kModel, {"mtp_depth"}) != nullptr;
  file.put_offset(file.spelled(kModel, {"offset"}), s, counted ? s.mtp_depth : 0);
}

void recompute(StrategyEditor& file, const ResolvedStrategy& s) {
  const auto put = [&](std::string_view key, bool everywhere, const std::vector<std::vector<std::int64_t>>& counts) {
    if (s.uniform || !any(counts)) return file.put(kRecompute, {key}, s.uniform && everywhere, false);
    // Counts per stage; the framework spreads them over the chunks.
    std::vector<std::int64_t> stages(counts.front().size(), 0);
    for (const auto& chunk : counts)
      for (std::size_t i = 0; i < chunk.size(); ++i) stages[i] += chunk[i];
    file.put(kRecompute, {key}, stages);
  };
  put("recompute", s.config.recompute == Recompute::full, s.full_recompute);
  put("select_recompute", s.config.recompute == Recompute::selective, s.selective_recompute);
}

}  // namespace

Result<std::vector<ResolvedFile>> write_mindformers(const Original& original, const ResolvedStrategy& strategy) {
  auto file = edit(original);
  if (!file) return file.error();
  degrees(*file, strategy);
  batch(*file, strategy);
  sharding(*file, strategy);
  pipeline(*file, strategy);
  recompute(*file, strategy);
  return file->finish(original);
}

}  // namespace nd::formats
