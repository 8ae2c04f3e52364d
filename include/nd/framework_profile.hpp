// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nd/device.hpp"

namespace nd {

/// How routed tokens reach their experts.
enum class Dispatcher : std::uint8_t { all_gather, all_to_all, deduplicating };
/// What the optimizer step allocates on top of the states.
enum class OptimizerTemporary : std::uint8_t { none, largest_tensor, all_gradients };
/// How layers that nobody assigns go to pipeline stages: evenly, or by the cost of blocks (docs/cost_model_pipeline.md#layouts).
enum class LayerSplit : std::uint8_t { even, block_cost };
/// Whether tensor parallelism goes without sequence parallelism: as the user likes, not with experts, or only
/// where the run itself does so (later versions have a switch).
enum class SequenceParallelRule : std::uint8_t { optional, with_experts, always };
/// What runs the gradient exchange and parameter gathers of the data-parallel group.
enum class DataParallelStyle : std::uint8_t { megatron, fsdp, fsdp2, deepspeed, mindspore };

/// Memory habits of one framework version. Bytes per parameter or per element unless said otherwise.
struct MemoryProfile {
  // Static bytes per parameter; docs/cost_model_memory.md#memory-static.
  double weight_bytes = 2, gradient_bytes = 4, main_bytes = 4, state_bytes = 8;  ///< state_bytes: all moments together
  double fp16_gradient_bytes = 2, fp16_step_bytes = 4;  ///< with fp16: gradient, fp32 copy of its shard during the step
  double gradient_partition_bytes = 0;                  ///< extra gradient shard of ZeRO (Megatron-DeepSpeed fp16: 4)
  bool parameters_sharded_over_tp_and_dp = false;       ///< FSDP2 style: everything over dp * cp * tp
  // Saved activations; docs/cost_model_memory.md#memory-activations.
  bool flash_attention = true;
  double swiglu_bytes = 6;         ///< per FFN column: gate, up, product; 8 with an eager SiLU
  double gelu_bytes = 4;           ///< per FFN column without a gate
  bool rotary_copies = false;      ///< rotated Q and K kept beside the plain ones
  bool gathered_inputs_kept = false;  ///< with sequence parallelism the gathered norm outputs are kept, not re-gathered
  double softmax_statistics_bytes = 4;  ///< per head and token under flash attention (NPU 64)
  bool mla_keeps_up_projection = false;
  bool selective_drops_attention = true;   ///< selective recompute drops the attention core (s^2 tensors)
  bool selective_drops_activation = false; ///< ... and the product of gate and up
  bool selective_drops_norm = false;       ///< ... and the norm outputs
  bool selective_drops_mla_up = false;
  bool selective_drops_experts = false;    ///< ... and everything routed experts and their dispatch keep
  bool selective_every_second_product = false;  ///< of the products of a layer every second one runs again: K, the up half of gate and up
  bool recompute_keeps_layer_input_sharded = true;  ///< the kept input is divided by tp under sequence parallelism
  Dispatcher dispatcher = Dispatcher::all_to_all;
  double expert_imbalance = 1.0;   ///< busiest rank / mean, tokens
  // Loss; bytes per logit element.
  double logit_bytes = 6;
  double logit_bytes_tp = 6;       ///< where vocabulary is sharded over tp
  // Working sets and extras.
  double base_workspace_gib = 0.12;
  double grouped_gemm_workspace_gib = 0.0;
  bool cached_weight_gradients = false;  ///< one bf16 buffer per distinct weight shape, alive for ever
  OptimizerTemporary optimizer_temporary = OptimizerTemporary::none;
  double layer_working_set_ffn = 6, layer_working_set_hidden = 4;  ///< backward of one layer: bytes per FFN column / hidden element and token
  double gathered_layers = 2;      ///< FSDP / ZeRO-3: layers whose full weights are alive at once
  double gathered_weight_bytes = 2;
  bool fsdp_root_gathered = false; ///< tables stay gathered all through (FSDP1)
  double reduce_buffer_bytes = 4;  ///< FSDP: reduce-scatter input, bytes per parameter of one layer
  double bucket_bytes = 0;         ///< fixed communication buckets, bytes in all
  // From allocated to what decides: reserved = static + factor * dynamic + constant (GiB); one device / several.
  double reserve_factor_single = 1.12, reserve_constant_single_gib = 0.65;
  double reserve_factor = 1.22, reserve_constant_gib = 2.5;
  double model_error = 0.05;       ///< relative error of the allocated peak, decides fits / tight
  // Instants and habits that only some frameworks have.
  double working_set_layers = 1.0;       ///< layers whose backward working set is alive at once
  double recompute_input_bytes = 2;      ///< per hidden element and token of the input a fully recomputed layer keeps
  bool boundary_gradients_kept = false;  ///< frozen base under FSDP1: hidden gradients of all layers live to the end of the backward
  double fsdp_table_bytes = 0;           ///< FSDP2: gathered weight and gradient of the embedding table, bytes per element / tp
  // Habits of some versions.
  bool interleaved_forwards_first = false;   ///< interleaved schedule with m = pp runs every forward first (Megatron-core up to 0.8)
  bool accumulates_whole_gradients = false;  ///< micro-batches but the last skip the reduction: whole 16-bit gradients stay alive (FSDP1 no_sync)
  double mask_creation_bytes = 0;            ///< bytes per element of an s x s mask made before the first step (MindSpeed hybrid CP: 6)
  bool gradients_freed_between_steps = false; ///< gradients exist from their backward to the step only (zero_grad(set_to_none)), unless micro-batches accumulate
  bool working_set_covers_recompute = false;  ///< layer_working_set_* were measured under full recompute: the recomputed layer is in them
  bool experts_in_turn = false;  ///< experts run one after another: the backward's temporaries are those of one expert
  bool full_keeps_experts = false;  ///< full recompute leaves the MoE block out: what experts and dispatch save stays
  bool optimizer_shards_parameters = false;  ///< where the optimizer is sharded, so are weights and gradients (MindSpore)
  double fp8_weight_bytes = 0;  ///< products in 8 bits: cast and transposed copies of a layer's weights that live through the step, bytes per weight
  friend bool operator==(const MemoryProfile&, const MemoryProfile&) = default;
};

/// Step-time habits of one framework version.
struct TimeProfile {
  double traffic_factor = 1.0;     ///< memory-bound bytes relative to fully fused operators
  double library_factor = 1.0;     ///< matrix-product rate relative to the device's own
  double host_layer_ms = 0.5;      ///< host time to launch one dense layer's forward
  double host_moe_factor = 2.0;    ///< ... of a MoE layer, relative
  double host_backward_ratio = 1.9;
  double host_ring_step_ms = 0.0;  ///< per ring step of context parallelism and layer
  double step_overhead_ms = 20;
  double tp_exposed = 1.0;         ///< share of TP communication that is not hidden
  double ep_exposed = 1.0;
  double cp_exposed = 0.75;
  double dp_overlap = 0.8;         ///< share of the compute window that gradient communication can hide behind
  double fsdp_overlap = 0.8;
  double dp_exposed_floor = 0.05;  ///< share that is exposed in any case
  double tp_volume_factor = 1.0;   ///< copies around TP collectives (eager DTensor 2.4)
  double reduce_bytes = 2;         ///< gradient bytes on the wire per parameter
  double gather_bytes = 2;
  bool overlap_gradient = true;
  bool flat_gather = false;        ///< ZeRO-3 gathers where every rank receives through its own NIC
  double broadcast_per_rank_ms = 0.0;  ///< optimizer that broadcasts shard by shard
  bool p2p_overlap = false;
  bool balanced_layout = true;     ///< uneven pipelines are laid out by cost
  double moe_traffic_factor = 2.6; ///< permute, sort, pad around the experts
  double optimizer_bytes = 32;     ///< read and written per sharded parameter
  std::string attention_kernel = "flash2";  ///< key of ComputeModel::attention_fraction
  bool supports_overlap_p2p = false;
  double ep_overlap = 0;                 ///< share of a layer's compute of another micro-batch that its token exchanges run behind
  double optimizer_host_bytes = 0;       ///< bytes per sharded parameter an optimizer in host memory copies each way in every step
  double dequantisation_bytes = 3;       ///< HBM bytes per parameter and pass to unpack a quantised frozen base
  double host_wide_tp_factor = 1.0;      ///< host time of a layer, relative, when a TP group spans more than half a node
  double host_blend = 6;                 ///< exponent that joins device and host time of a pass; large = the longer of the two
  bool overlap_gather = true;      ///< with overlap_gradient: updated weights are gathered behind the next step's first forward
  friend bool operator==(const TimeProfile&, const TimeProfile&) = default;
};

/// What a framework can run; candidates outside are rejected with a reason.
struct CapabilityProfile {
  bool tensor_parallel = true, pipeline_parallel = true, context_parallel = true, expert_parallel = true, expert_tensor_parallel = true;
  bool interleaved = true, sequence_parallel = true, uneven_layers = false, kv_head_replication = true;
  SequenceParallelRule sequence_parallel_with_tp = SequenceParallelRule::optional;
  int max_zero = 3;
  DataParallelStyle style = DataParallelStyle::megatron;
  /// Ranks are numbered with these dims from the innermost out ("tp-cp-ep-dp-pp").
  std::string rank_order = "tp-cp-dp-pp";
  std::int64_t vocab_padding = 128;  ///< the table is padded to a multiple of this times tp
  std::string schedules = "1f1b, interleaved";  ///< pipeline schedules, names of the schedule table
  bool micro_batch_group = false;  ///< the groups of the interleaved schedule may have another size than pp
  LayerSplit layer_split = LayerSplit::even;
  bool interleaved_any_batches = false;  ///< interleaved also with micro-batches that are no multiple of pp
  friend bool operator==(const CapabilityProfile&, const CapabilityProfile&) = default;
};

/// Facts about one version of one trainer; data/frameworks/<name>.yaml. Immutable after loading.
struct FrameworkProfile {
  std::string name;
  std::string version;  ///< the version whose figures these are, which may be older than the one asked for
  std::string title;
  CapabilityProfile can;
  MemoryProfile memory;
  TimeProfile time;
  std::map<std::string, FigureSource> sources;  ///< by field path
  friend bool operator==(const FrameworkProfile&, const FrameworkProfile&) = default;
};

[[nodiscard]] const char* to_text(Dispatcher dispatcher);
[[nodiscard]] const char* to_text(OptimizerTemporary temporary);
[[nodiscard]] const char* to_text(DataParallelStyle style);
[[nodiscard]] const char* to_text(LayerSplit split);
[[nodiscard]] const char* to_text(SequenceParallelRule rule);

}  // namespace nd
