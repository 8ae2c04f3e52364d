// SPDX-License-Identifier: Apache-2.0
#include "run/profile_fields.hpp"

#include <array>
#include <cstddef>

#include "nd/framework_profile.hpp"

namespace nd {
namespace run {
namespace {

// The key and the member in one word, so that they cannot differ.
#define ND_FIELD(Section, member) \
  ProfileField<Section> { #member, &Section::member }

const std::array kMemoryProfileFields{
    ND_FIELD(MemoryProfile, weight_bytes),
    ND_FIELD(MemoryProfile, gradient_bytes),
    ND_FIELD(MemoryProfile, main_bytes),
    ND_FIELD(MemoryProfile, state_bytes),
    ND_FIELD(MemoryProfile, fp16_gradient_bytes),
    ND_FIELD(MemoryProfile, fp16_step_bytes),
    ND_FIELD(MemoryProfile, gradient_partition_bytes),
    ND_FIELD(MemoryProfile, parameters_sharded_over_tp_and_dp),
    ND_FIELD(MemoryProfile, flash_attention),
    ND_FIELD(MemoryProfile, swiglu_bytes),
    ND_FIELD(MemoryProfile, gelu_bytes),
    ND_FIELD(MemoryProfile, rotary_copies),
    ND_FIELD(MemoryProfile, gathered_inputs_kept),
    ND_FIELD(MemoryProfile, softmax_statistics_bytes),
    ND_FIELD(MemoryProfile, mla_keeps_up_projection),
    ND_FIELD(MemoryProfile, selective_drops_attention),
    ND_FIELD(MemoryProfile, selective_drops_activation),
    ND_FIELD(MemoryProfile, selective_drops_norm),
    ND_FIELD(MemoryProfile, selective_drops_mla_up),
    ND_FIELD(MemoryProfile, selective_drops_experts),
    ND_FIELD(MemoryProfile, selective_every_second_product),
    ND_FIELD(MemoryProfile, recompute_keeps_layer_input_sharded),
    ND_FIELD(MemoryProfile, dispatcher),
    ND_FIELD(MemoryProfile, expert_imbalance),
    ND_FIELD(MemoryProfile, logit_bytes),
    ND_FIELD(MemoryProfile, logit_bytes_tp),
    ND_FIELD(MemoryProfile, base_workspace_gib),
    ND_FIELD(MemoryProfile, grouped_gemm_workspace_gib),
    ND_FIELD(MemoryProfile, cached_weight_gradients),
    ND_FIELD(MemoryProfile, optimizer_temporary),
    ND_FIELD(MemoryProfile, layer_working_set_ffn),
    ND_FIELD(MemoryProfile, layer_working_set_hidden),
    ND_FIELD(MemoryProfile, gathered_layers),
    ND_FIELD(MemoryProfile, gathered_weight_bytes),
    ND_FIELD(MemoryProfile, fsdp_root_gathered),
    ND_FIELD(MemoryProfile, reduce_buffer_bytes),
    ND_FIELD(MemoryProfile, bucket_bytes),
    ND_FIELD(MemoryProfile, reserve_factor_single),
    ND_FIELD(MemoryProfile, reserve_constant_single_gib),
    ND_FIELD(MemoryProfile, reserve_factor),
    ND_FIELD(MemoryProfile, reserve_constant_gib),
    ND_FIELD(MemoryProfile, model_error),
    ND_FIELD(MemoryProfile, working_set_layers),
    ND_FIELD(MemoryProfile, recompute_input_bytes),
    ND_FIELD(MemoryProfile, boundary_gradients_kept),
    ND_FIELD(MemoryProfile, experts_in_turn),
    ND_FIELD(MemoryProfile, fp8_weight_bytes),
    ND_FIELD(MemoryProfile, full_keeps_experts),
    ND_FIELD(MemoryProfile, optimizer_shards_parameters),
    ND_FIELD(MemoryProfile, fsdp_table_bytes),
    ND_FIELD(MemoryProfile, interleaved_forwards_first),
    ND_FIELD(MemoryProfile, accumulates_whole_gradients),
    ND_FIELD(MemoryProfile, mask_creation_bytes),
    ND_FIELD(MemoryProfile, gradients_freed_between_steps),
    ND_FIELD(MemoryProfile, working_set_covers_recompute),
};

const std::array kTimeProfileFields{
    ND_FIELD(TimeProfile, traffic_factor),
    ND_FIELD(TimeProfile, library_factor),
    ND_FIELD(TimeProfile, host_layer_ms),
    ND_FIELD(TimeProfile, host_moe_factor),
    ND_FIELD(TimeProfile, host_backward_ratio),
    ND_FIELD(TimeProfile, host_ring_step_ms),
    ND_FIELD(TimeProfile, host_wide_tp_factor),
    ND_FIELD(TimeProfile, host_blend),
    ND_FIELD(TimeProfile, step_overhead_ms),
    ND_FIELD(TimeProfile, tp_exposed),
    ND_FIELD(TimeProfile, ep_exposed),
    ND_FIELD(TimeProfile, cp_exposed),
    ND_FIELD(TimeProfile, dp_overlap),
    ND_FIELD(TimeProfile, fsdp_overlap),
    ND_FIELD(TimeProfile, dp_exposed_floor),
    ND_FIELD(TimeProfile, tp_volume_factor),
    ND_FIELD(TimeProfile, reduce_bytes),
    ND_FIELD(TimeProfile, gather_bytes),
    ND_FIELD(TimeProfile, overlap_gradient),
    ND_FIELD(TimeProfile, flat_gather),
    ND_FIELD(TimeProfile, broadcast_per_rank_ms),
    ND_FIELD(TimeProfile, p2p_overlap),
    ND_FIELD(TimeProfile, balanced_layout),
    ND_FIELD(TimeProfile, moe_traffic_factor),
    ND_FIELD(TimeProfile, optimizer_bytes),
    ND_FIELD(TimeProfile, attention_kernel),
    ND_FIELD(TimeProfile, supports_overlap_p2p),
    ND_FIELD(TimeProfile, ep_overlap),
    ND_FIELD(TimeProfile, optimizer_host_bytes),
    ND_FIELD(TimeProfile, dequantisation_bytes),
    ND_FIELD(TimeProfile, overlap_gather),
};

const std::array kCapabilityProfileFields{
    ND_FIELD(CapabilityProfile, tensor_parallel),
    ND_FIELD(CapabilityProfile, pipeline_parallel),
    ND_FIELD(CapabilityProfile, context_parallel),
    ND_FIELD(CapabilityProfile, expert_parallel),
    ND_FIELD(CapabilityProfile, expert_tensor_parallel),
    ND_FIELD(CapabilityProfile, interleaved),
    ND_FIELD(CapabilityProfile, sequence_parallel),
    ND_FIELD(CapabilityProfile, uneven_layers),
    ND_FIELD(CapabilityProfile, kv_head_replication),
    ND_FIELD(CapabilityProfile, sequence_parallel_with_tp),
    ND_FIELD(CapabilityProfile, max_zero),
    ND_FIELD(CapabilityProfile, style),
    ND_FIELD(CapabilityProfile, rank_order),
    ND_FIELD(CapabilityProfile, vocab_padding),
    ND_FIELD(CapabilityProfile, schedules),
    ND_FIELD(CapabilityProfile, micro_batch_group),
    ND_FIELD(CapabilityProfile, layer_split),
    ND_FIELD(CapabilityProfile, interleaved_any_batches),
};

#undef ND_FIELD

}  // namespace

std::span<const ProfileField<MemoryProfile>> memory_fields() { return kMemoryProfileFields; }
std::span<const ProfileField<TimeProfile>> time_fields() { return kTimeProfileFields; }
std::span<const ProfileField<CapabilityProfile>> capability_fields() { return kCapabilityProfileFields; }

}  // namespace run

const char* to_text(Dispatcher dispatcher) {
  constexpr std::array<const char*, 3> kText{"all_gather", "all_to_all", "deduplicating"};
  return kText.at(static_cast<std::size_t>(dispatcher));
}

const char* to_text(OptimizerTemporary temporary) {
  constexpr std::array<const char*, 3> kText{"none", "largest_tensor", "all_gradients"};
  return kText.at(static_cast<std::size_t>(temporary));
}

const char* to_text(LayerSplit split) {
  constexpr std::array<const char*, 2> kText{"even", "block_cost"};
  return kText.at(static_cast<std::size_t>(split));
}

const char* to_text(SequenceParallelRule rule) {
  constexpr std::array<const char*, 3> kText{"optional", "with_experts", "always"};
  return kText.at(static_cast<std::size_t>(rule));
}

const char* to_text(DataParallelStyle style) {
  constexpr std::array<const char*, 5> kText{"megatron", "fsdp", "fsdp2", "deepspeed", "mindspore"};
  return kText.at(static_cast<std::size_t>(style));
}

}  // namespace nd
