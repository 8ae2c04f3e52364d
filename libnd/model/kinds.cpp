// SPDX-License-Identifier: Apache-2.0
#include "model/kinds.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace nd::model {
namespace {

/// How far one layer sees, independent of the head geometry.
enum class Reach : std::uint8_t { full, windowed, linear };

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Reach reach_of(const ModelSpec& spec, std::int64_t layer) {
  const auto every = [layer](std::int64_t n) { return (layer + 1) % n == 0; };
  if (!spec.layer_types.empty()) {
    const std::string& type = spec.layer_types[static_cast<std::size_t>(layer)];
    if (type == "linear_attention") return Reach::linear;
    return type == "full_attention" ? Reach::full : Reach::windowed;
  }
  if (spec.linear_num_key_heads && spec.full_attention_interval)
    return every(*spec.full_attention_interval) ? Reach::full : Reach::linear;
  if (!spec.sliding_window) return Reach::full;
  if (spec.sliding_window_pattern) return every(*spec.sliding_window_pattern) ? Reach::full : Reach::windowed;
  return Reach::windowed;
}

/// Names and length of layer_types, and whether the facts they need are there.
bool layer_types_usable(const ModelSpec& spec, Checker& check) {
  if (spec.layer_types.empty()) return true;
  bool usable = true;
  const std::int64_t layers = *spec.num_hidden_layers;
  if (static_cast<std::int64_t>(spec.layer_types.size()) < layers) {
    check.error("layer_types", Errc::conflict, fmt::format("has {} entries for {} layers", spec.layer_types.size(), layers));
    usable = false;
  }
  bool needs_window = false, needs_linear = false;
  for (const std::string& type : spec.layer_types) {
    if (type == "sliding_attention" || type == "chunked_attention") {
      needs_window = true;
    } else if (type == "linear_attention") {
      needs_linear = true;
    } else if (type != "full_attention") {
      check.error("layer_types", Errc::out_of_range, fmt::format("unknown kind of layer '{}'", type),
                  "known: full_attention, sliding_attention, chunked_attention, linear_attention");
      usable = false;
      break;
    }
  }
  if (needs_window && !spec.sliding_window) {
    check.error("sliding_window", Errc::missing_field, "is required by the windowed entries of layer_types");
    usable = false;
  }
  if (needs_linear && !spec.linear_num_key_heads) {
    check.error("linear_num_key_heads", Errc::missing_field, "linear_* fields are required by the linear entries of layer_types");
    usable = false;
  }
  return usable;
}

AttentionSpec linear_attention(const ModelSpec& spec) {
  AttentionSpec out;
  out.kind = AttentionKind::gated_delta;
  out.linear_key_heads = spec.linear_num_key_heads.value_or(0);
  out.linear_value_heads = spec.linear_num_value_heads.value_or(0);
  out.linear_key_dim = spec.linear_key_head_dim.value_or(0);
  out.linear_value_dim = spec.linear_value_head_dim.value_or(0);
  out.conv_kernel = spec.linear_conv_kernel_dim.value_or(0);
  out.heads = out.linear_value_heads;
  out.kv_heads = out.linear_key_heads;
  out.qk_dim = out.linear_key_dim;
  out.v_dim = out.linear_value_dim;
  return out;
}

AttentionSpec softmax_attention(const ModelSpec& spec) {
  AttentionSpec out;
  out.heads = *spec.num_attention_heads;
  out.qkv_bias = spec.attention_bias.value_or(false);
  out.output_bias = spec.attention_output_bias.value_or(false);
  out.sinks = spec.attention_sinks.value_or(false);
  if (spec.kv_lora_rank.value_or(0) > 0) {
    out.kind = AttentionKind::mla;
    out.kv_heads = out.heads;
    out.kv_lora_rank = *spec.kv_lora_rank;
    out.q_lora_rank = spec.q_lora_rank.value_or(0);
    out.rope_dim = *spec.qk_rope_head_dim;
    out.nope_dim = *spec.qk_nope_head_dim;
    out.qk_dim = out.rope_dim + out.nope_dim;
    out.v_dim = *spec.v_head_dim;
    return out;
  }
  out.kv_heads = spec.num_key_value_heads.value_or(out.heads);
  out.qk_dim = spec.head_dim ? *spec.head_dim : *spec.hidden_size / out.heads;
  out.v_dim = spec.v_head_dim.value_or(out.qk_dim);
  out.qk_norm = spec.qk_norm.value_or(false);
  out.output_gate = spec.attention_output_gate.value_or(false);
  return out;
}

bool is_moe(const ModelSpec& spec, std::int64_t layer) {
  if (spec.num_experts.value_or(0) <= 1) return false;
  if (!spec.moe_layers.empty()) return contains(spec.moe_layers, layer);
  if (layer < spec.first_k_dense_replace.value_or(0) || contains(spec.mlp_only_layers, layer)) return false;
  return (layer + 1) % spec.moe_layer_freq.value_or(1) == 0;
}

FfnSpec moe_ffn(const ModelSpec& spec) {
  FfnSpec out;
  out.kind = FfnKind::moe;
  out.gated = spec.gated_ffn.value_or(true);
  out.experts = *spec.num_experts;
  out.experts_per_token = spec.num_experts_per_tok.value_or(1);
  out.expert_width = spec.moe_intermediate_size ? *spec.moe_intermediate_size : *spec.intermediate_size;
  out.expert_bias = spec.expert_bias.value_or(false);
  out.router_bias = spec.router_bias.value_or(false);
  const std::int64_t shared_width = spec.shared_expert_intermediate_size.value_or(0);
  out.shared_experts = spec.num_shared_experts.value_or(shared_width > 0 ? 1 : 0);
  if (out.shared_experts > 0) {
    out.shared_width = shared_width > 0 ? shared_width : out.expert_width;
    out.shared_gate = spec.shared_expert_gate.value_or(false);
  }
  return out;
}

/// A dense layer's width; where nothing states one, the shared expert's, then the routed expert's stands in.
FfnSpec dense_ffn(const ModelSpec& spec, Checker& check) {
  FfnSpec out;
  out.gated = spec.gated_ffn.value_or(true);
  out.bias = spec.ffn_bias.value_or(false);
  for (const auto& width : {spec.dense_intermediate_size, spec.intermediate_size, spec.shared_expert_intermediate_size,
                            spec.moe_intermediate_size}) {
    out.width = width.value_or(0);
    if (out.width > 0) return out;
  }
  check.error("intermediate_size", Errc::missing_field, "is required: no feed-forward width is stated");
  return out;
}

}  // namespace

std::vector<LayerKind> layer_kinds(const ModelSpec& spec, Checker& check) {
  if (!layer_types_usable(spec, check)) return {};
  const std::int64_t layers = *spec.num_hidden_layers;
  const AttentionSpec full = softmax_attention(spec);
  AttentionSpec windowed = full;
  windowed.window = spec.sliding_window.value_or(0);
  const AttentionSpec linear = linear_attention(spec);

  bool any_dense = false;
  for (std::int64_t i = 0; i < layers && !any_dense; ++i) any_dense = !is_moe(spec, i);
  const FfnSpec dense = any_dense ? dense_ffn(spec, check) : FfnSpec{};
  if (check.failed()) return {};
  const FfnSpec moe = spec.num_experts.value_or(0) > 1 ? moe_ffn(spec) : FfnSpec{};

  LayerKind common;
  common.parallel_residual = spec.parallel_residual.value_or(false);
  common.norms = spec.norms_per_layer.value_or(common.parallel_residual ? 1 : 2);
  common.norm_bias = spec.norm_bias.value_or(false);
  std::vector<LayerKind> out;
  out.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    const Reach reach = reach_of(spec, i);
    out.push_back(common);
    out.back().attention = reach == Reach::linear ? linear : reach == Reach::windowed ? windowed : full;
    out.back().ffn = is_moe(spec, i) ? moe : dense;
  }
  return out;
}

}  // namespace nd::model
