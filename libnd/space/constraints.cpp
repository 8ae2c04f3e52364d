// SPDX-License-Identifier: Apache-2.0
#include "space/constraints.hpp"

namespace nd::space {

namespace {

std::int64_t stage_ranks(const ParallelConfig& c) { return std::int64_t{c.dp} * c.cp * c.tp; }

/// The run states how many layers each chunk of each stage has, for exactly these degrees.
bool states_layout(const SpaceContext& context, std::int64_t pp, std::int64_t vpp) {
  const auto& chunks = context.scenario.run.layers_per_chunk;
  if (static_cast<std::int64_t>(chunks.size()) != vpp) return false;
  for (const auto& stages : chunks)
    if (static_cast<std::int64_t>(stages.size()) != pp) return false;
  return true;
}

bool shards_beside_pipeline(DataParallelStyle style) {
  return style == DataParallelStyle::fsdp2 || style == DataParallelStyle::mindspore;
}

/// Some schedule that the framework offers has several chunks per stage.
bool runs_chunks(const SpaceContext& context) {
  return context.offers(Schedule::interleaved) || context.offers(Schedule::zb_v) || context.offers(Schedule::dualpipe_v);
}

bool is_fsdp(DataParallelStyle style) { return style == DataParallelStyle::fsdp || style == DataParallelStyle::fsdp2; }

}  // namespace

Verdict check_layers(const SpaceContext& context, std::int64_t pp, std::int64_t vpp) {
  if (states_layout(context, pp, vpp)) return std::nullopt;
  if (pp * vpp > context.layers) return Rejection::too_many_stages;
  if (!context.can.uneven_layers && context.layers % (pp * vpp) != 0) return Rejection::layers_not_divisible;
  return std::nullopt;
}

Verdict check_tp(const SpaceContext& context, const ParallelConfig& config) {
  const std::int64_t tp = config.tp;
  if (context.devices % tp != 0) return Rejection::devices_mismatch;
  if (tp == 1) return std::nullopt;
  if (!context.can.tensor_parallel) return Rejection::unsupported_by_framework;
  for (const auto heads : context.heads)
    if (heads % tp != 0) return Rejection::heads_not_divisible;
  for (const auto heads : context.kv_heads)
    if (heads % tp != 0 && !(context.can.kv_head_replication && tp % heads == 0)) return Rejection::kv_heads_not_divisible;
  for (const auto width : context.widths)
    if (width % tp != 0) return Rejection::width_not_divisible;
  return std::nullopt;
}

Verdict check_pp(const SpaceContext& context, const ParallelConfig& config) {
  if (context.devices % (std::int64_t{config.tp} * config.pp) != 0) return Rejection::devices_mismatch;
  if (config.pp > 1 && !context.can.pipeline_parallel) return Rejection::unsupported_by_framework;
  if (config.pp > context.layers) return Rejection::too_many_stages;
  // With chunks the count per stage need not divide by itself when a layout for pp * vpp is stated: vpp decides then.
  const bool stated = !context.scenario.run.layers_per_chunk.empty();
  if (!stated && !context.can.uneven_layers && context.layers % config.pp != 0) return Rejection::layers_not_divisible;
  return std::nullopt;
}

Verdict check_cp(const SpaceContext& context, const ParallelConfig& config) {
  const std::int64_t cp = config.cp;
  if (context.devices % (std::int64_t{config.tp} * config.pp * cp) != 0) return Rejection::devices_mismatch;
  if (cp == 1) return std::nullopt;
  if (!context.can.context_parallel) return Rejection::unsupported_by_framework;
  if (config.cp_algorithm == CpAlgorithm::ulysses) {
    if (context.seq_length % cp != 0) return Rejection::sequence_not_divisible;
    for (const auto heads : context.heads)
      if (heads % (cp * config.tp) != 0) return Rejection::heads_not_divisible;
    for (const auto heads : context.kv_heads) {
      const std::int64_t ranks = cp * config.tp;
      if (heads % ranks != 0 && !(context.can.kv_head_replication && ranks % heads == 0)) return Rejection::kv_heads_not_divisible;
    }
    return std::nullopt;
  }
  if (context.seq_length % (2 * cp) != 0) return Rejection::sequence_not_divisible;
  return std::nullopt;
}

Verdict check_dp(const SpaceContext& context, const ParallelConfig& config) {
  if (config.devices() != context.devices) return Rejection::devices_mismatch;
  if (context.global_batch % config.dp != 0) return Rejection::batch_mismatch;
  return std::nullopt;
}

Verdict check_ep(const SpaceContext& context, const ParallelConfig& config) {
  if (config.ep == 1) return std::nullopt;
  if (!context.moe) return Rejection::no_experts;
  if (!context.can.expert_parallel) return Rejection::unsupported_by_framework;
  for (const auto experts : context.experts)
    if (experts % config.ep != 0) return Rejection::experts_not_divisible;
  if (stage_ranks(config) % config.ep != 0) return Rejection::expert_group_not_divisible;
  return std::nullopt;
}

Verdict check_etp(const SpaceContext& context, const ParallelConfig& config) {
  if (config.etp == 1) return std::nullopt;
  if (!context.moe) return Rejection::no_experts;
  // Without a degree of their own the experts follow tp.
  if (!context.can.expert_tensor_parallel && config.etp != config.tp) return Rejection::unsupported_by_framework;
  if (stage_ranks(config) % (std::int64_t{config.ep} * config.etp) != 0) return Rejection::expert_group_not_divisible;
  for (const auto width : context.expert_widths)
    if (width % config.etp != 0) return Rejection::width_not_divisible;
  return std::nullopt;
}

Verdict check_sequence_parallel(const SpaceContext& context, const ParallelConfig& config) {
  if (!config.sequence_parallel) {
    const auto rule = context.can.sequence_parallel_with_tp;
    // A run that goes without shows that its version of the trainer can.
    const auto& stated = context.scenario.run.strategy;
    const bool never = rule == SequenceParallelRule::always && (stated.tp == 1 || stated.sequence_parallel);
    const bool needed = config.tp > 1 && (never || (rule == SequenceParallelRule::with_experts && context.moe));
    return needed ? Verdict(Rejection::sequence_parallel_conflict) : std::nullopt;
  }
  if (!context.can.sequence_parallel) return Rejection::unsupported_by_framework;
  if (config.tp == 1) return Rejection::sequence_parallel_conflict;
  if (context.seq_length % (std::int64_t{config.tp} * config.cp) != 0) return Rejection::sequence_not_divisible;
  return std::nullopt;
}

Verdict check_micro_batch_size(const SpaceContext& context, const ParallelConfig& config) {
  if (context.global_batch % (std::int64_t{config.dp} * config.micro_batch_size) != 0) return Rejection::batch_mismatch;
  return std::nullopt;
}

Verdict check_micro_batch_num(const SpaceContext& context, const ParallelConfig& config) {
  if (config.global_batch() != context.global_batch) return Rejection::batch_mismatch;
  // MindSpore: micro_batch_num must not be below the number of stages (mindspore.nn.PipelineCell).
  if (context.can.style == DataParallelStyle::mindspore && config.micro_batch_num < config.pp)
    return Rejection::micro_batches_below_stages;
  return std::nullopt;
}

Verdict check_vpp(const SpaceContext& context, const ParallelConfig& config) {
  if (const auto verdict = check_layers(context, config.pp, config.vpp)) return verdict;
  if (config.vpp == 1) return std::nullopt;
  if (!runs_chunks(context)) return Rejection::unsupported_by_framework;
  if (config.pp == 1) return Rejection::schedule_unsupported;
  return std::nullopt;
}

Verdict check_zero(const SpaceContext& context, const ParallelConfig& config) {
  if (static_cast<int>(config.zero) > context.can.max_zero) return Rejection::unsupported_by_framework;
  if (config.zero == ZeroLevel::optimizer && is_fsdp(context.can.style)) return Rejection::unsupported_by_framework;
  // DeepSpeed and Megatron FSDP refuse ZeRO-2/3 with a pipeline: each micro-batch would repeat the exchange.
  if (config.zero >= ZeroLevel::gradients && config.pp > 1 && !shards_beside_pipeline(context.can.style))
    return Rejection::unsupported_by_framework;
  return std::nullopt;
}

Verdict check_optimizer_shard(const SpaceContext& /*context*/, const ParallelConfig& config) {
  const std::int64_t ranks = std::int64_t{config.dp} * config.cp;
  if (ranks % config.op != 0) return Rejection::sharding_conflict;
  if (config.zero == ZeroLevel::none) return config.op == 1 ? std::nullopt : Verdict(Rejection::sharding_conflict);
  // ZeRO over a single rank is allowed and does nothing.
  if (config.op == 1 && ranks > 1) return Rejection::sharding_conflict;
  return std::nullopt;
}

Verdict check_recompute(const SpaceContext& /*context*/, const ParallelConfig& /*config*/) { return std::nullopt; }

}  // namespace nd::space
