// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/known.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"

namespace nd::formats::megatron {

namespace {

/// Arguments that change memory or time and that no reader prices.
constexpr std::array<std::string_view, 46> kUnpriced{
    "swap_attention",
    "adaptive_recompute_device_swap",
    "adaptive_recompute_device_size",
    "recompute_in_advance",
    "recompute_in_bubble",
    "recompute_activation_function_num_layers",
    "lora_r",
    "lora_target_modules",
    "qlora",
    "lora_fusion",
    "tp_2d",
    "tp_x",
    "tp_y",
    "cpu_offloading",
    "cpu_offloading_num_layers",
    "fine_grained_activation_offloading",
    "moe_zero_memory",
    "moe_zero_memory_num_layers",
    "moe_alltoall_overlap_comm",
    "moe_allgather_overlap_comm",
    "moe_hierarchical_alltoallv",
    "moe_experts_pipeline_degree",
    "moe_bmm_mc2",
    "overlap_moe_expert_parallel_comm",
    "delay_wgrad_compute",
    "context_parallel_kv_cache_policy",
    "hierarchical_context_parallel_sizes",
    "ulysses_degree_in_cp",
    "smart_swap",
    "ripipe",
    "optimize_send_recv_comm",
    "optimize_vpp_send_recv_comm",
    "nanopipe",
    "use_nanopipe",
    "use_quant_optimizer",
    "quant_states",
    "quant_grads",
    "distribute_saved_activations",
    "virtual_optimizer",
    "ema_decay",
    "dpo_beta",
    "ref_model",
    "stage",
    "mtp_mem_efficient_logits",
    "layerzero",
    "decoder_pipeline_split_rank",
};

/// Beginnings of names that say where data is, what is logged and saved, how the learning rate moves: no part of the price.
constexpr std::array<std::string_view, 78> kHarmlessBeginnings{
    "log_",        "no_log",      "save",         "load",        "eval_",       "lr",          "min_lr",      "decoupled_",   "adam_",      "sgd_",
    "muon_",       "weight_decay", "start_weight", "end_weight", "data_",       "train_",      "valid_",      "test_",        "tokenizer",  "vocab_",
    "merge_file",  "tensorboard", "wandb",        "one_logger",  "profile",     "timing",      "ckpt",        "dist_ckpt",    "checkpoint", "use_checkpoint",
    "rotary",      "rope_",       "use_rope",     "init_method", "norm_epsilon", "layernorm_", "seed",        "split",        "mock_data",  "num_workers",
    "distributed_", "exit_",      "loss_scale",   "initial_loss", "hysteresis", "manual_gc",   "no_load",     "no_save",      "finetune",   "override_",
    "apply_",      "moe_aux",     "moe_z_loss",   "moe_router_", "moe_permut",  "moe_layer_recompute", "mtp_loss", "reset_",     "eod_",       "mscale",
    "beta_",       "is_instruction", "prompt_",   "pad_to",      "dataloader",  "no_check",    "check_for",   "empty_unused", "async_",     "auto_",
    "non_persistent", "use_mcore", "use_dist_ckpt", "enable_experimental", "enable_gloo", "logging_", "dataset", "rerun_"};

/// Names of their own that are no part of the price, or whose effect every run of the trainer has.
constexpr std::array<std::string_view, 117> kHarmless{
    "rank",
    "local_rank",
    "transformer_impl",
    "spec",
    "clip_grad",
    "log_interval",
    "n_group",
    "topk_group",
    "num_groups",
    "routed_scaling_factor",
    "norm_topk_prob",
    "seq_aux",
    "router_gating_in_fp32",
    "expert_interval",
    "masked_softmax_fusion",
    "no_masked_softmax_fusion",
    "bias_gelu_fusion",
    "no_bias_gelu_fusion",
    "bias_dropout_fusion",
    "no_bias_dropout_fusion",
    "no_rope_fusion",
    "no_persist_layer_norm",
    "persist_layer_norm",
    "attention_softmax_in_fp32",
    "accumulate_allreduce_grads_in_fp32",
    "use_fused_rmsnorm",
    "use_fused_rotary_pos_emb",
    "use_rotary_position_embeddings",
    "gemm_gradient_accumulation_fusion",
    "no_shared_storage",
    "use_distributed_optimizer",
    "mla_mm_split",
    "mla_fa_without_pad",
    "moe_permutation_async_comm",
    "moe_permute_fusion",
    "use_fused_moe_token_permute_and_unpermute",
    "moe_fb_overlap",
    "moe_tp_extend_ep",
    "moe_flex_dispatcher_backend",
    "moe_enable_deepep",
    "moe_use_legacy_grouped_gemm",
    "moe_token_drop_policy",
    "moe_input_jitter_eps",
    "moe_per_layer_logging",
    "moe_shared_expert_overlap",
    "jit_compile",
    "sparse_mode",
    "pre_tockens",
    "next_tockens",
    "shape_order",
    "use_flash_attn",
    "square_alibi_mask",
    "fill_neg_inf",
    "variable_seq_lengths",
    "no_create_attention_mask_in_dataloader",
    "create_attention_mask_in_dataloader",
    "calculate_per_token_loss",
    "no_mmap_bin_files",
    "tiktoken_pattern",
    "distrib_optim_fully_reshardable_mem_efficient",
    "use_nccl_ub",
    "nccl_ub",
    "fsdp_double_buffer",
    "init_model_with_meta_device",
    "microbatch_group_size_per_virtual_pipeline_stage",
    "microbatch_group_size_per_vp_stage",
    "use_tp_pp_dp_mapping",
    "tp_comm_bootstrap_backend",
    "tp_comm_overlap_cfg",
    "disable_tp_comm_overlap_ag",
    "disable_tp_comm_overlap_rs",
    "disable_tp_comm_bulk_dgrad",
    "disable_tp_comm_bulk_wgrad",
    "ddp_bucket_size",
    "ddp_num_buckets",
    "ddp_average_in_collective",
    "ddp_pad_buckets_for_high_nccl_busbw",
    "DDP_impl",
    "fp16_lm_cross_entropy",
    "attention_bias",
    "query_key_layer_scaling",
    "cross_entropy_fusion_impl",
    "te_rng_tracker",
    "inference_rng_tracker",
    "cuda_graph_warmup_steps",
    "cuda_graph_scope",
    "enable_msc",
    "disable_msc",
    "context_parallel_size",
    "dataloader_type",
    "overlap_param_gather",
    "overlap_param_gather_with_optimizer_step",
    "align_grad_reduce",
    "align_param_gather",
    "no_align_grad_reduce",
    "make_vocab_size_divisible_by",
    "world_size",
    "standalone_embedding_stage",
    "delay_grad_reduce",
    "consumed_train_samples",
    "consumed_valid_samples",
    "iteration",
    "start_iteration",
    "skip_train",
    "rampup_batch_size",
    "max_position_embeddings",
    "untie_embeddings_and_output_weights",
    "use_cp_send_recv_overlap",
    "sft",
    "sft_tokenizer_prompt_format",
    "tool_prompt",
    "enable_thinking",
    "no_pad_to_seq_lengths",
    "cut_max_seqlen",
    "neat_pack",
    "packed_samples",
    "use_sparse_flash_attn",
};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool harmless(std::string_view name) {
  if (is_one_of(name, kHarmless)) return true;
  return std::any_of(kHarmlessBeginnings.begin(), kHarmlessBeginnings.end(), [name](std::string_view start) { return name.starts_with(start); });
}

/// Off, or what a dump says of something that is not used.
bool says_nothing(const ConfigNode& node) {
  if (node.is_null()) return true;
  if (node.is_sequence()) return node.items.empty();
  const std::string text = core::canonical_name(node.text);
  return text == "false" || text == "none" || text == "null" || text == "0" || text.empty();
}

/// The known argument this one was meant to be, when it is one or two letters off.
std::string near_miss(std::string_view name, const Fields& fields) {
  constexpr std::size_t kShortest = 8, kLongest = 64;
  if (name.size() < kShortest || name.size() > kLongest) return {};
  for (const auto& known : fields.asked())
    if (known.size() >= kShortest && core::edit_distance(name, known) <= 2) return known;
  return {};
}

std::string option(std::string_view name) {
  std::string out = "--" + std::string(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string listing(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20, kLongest = 60;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) out += (i == 0 ? "" : ", ") + names[i].substr(0, kLongest);
  if (names.size() > kShown) out += " and " + std::to_string(names.size() - kShown) + " more";
  return out;
}

}  // namespace

void report_unread(Fields& fields, bool complete) {
  std::vector<std::string> harmless_names, strange;
  for (const auto& [name, node] : fields.root().members) {
    if (fields.asked().count(name) != 0 || says_nothing(node)) continue;
    if (is_one_of(name, kUnpriced)) {
      fields.warn({name}, Errc::unsupported, "changes memory or time and is not priced");
    } else if (harmless(name)) {
      harmless_names.push_back(option(name));
    } else if (const std::string near = complete ? std::string() : near_miss(name, fields); !near.empty()) {
      fields.error({name}, Errc::unknown_key, "unknown argument", "did you mean '" + option(near) + "'?");
    } else {
      strange.push_back(option(name));
    }
  }
  const SourceRef where{fields.root().where.file, 0, 0, {}};
  if (!harmless_names.empty())
    fields.notes.push_back({Severity::note, Errc::unsupported, where, "no part of the price: " + listing(harmless_names), {}});
  if (!strange.empty())
    fields.notes.push_back({complete ? Severity::note : Severity::warning, Errc::unknown_key, where,
                            "not known here; what changes memory or time among them is not priced: " + listing(strange), {}});
}

}  // namespace nd::formats::megatron
