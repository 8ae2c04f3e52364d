// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nd/result.hpp"

namespace nd {

/// How attention of one layer kind works.
enum class AttentionKind {
  none,      ///< no token mixing (a layer of only a feed-forward network)
  softmax,   ///< multi-head, grouped-query or multi-query
  mla,       ///< multi-head latent attention (DeepSeek-V2/V3)
  gated_delta,  ///< gated delta-rule linear attention with a short convolution (Qwen3-Next)
};

enum class FfnKind { none, dense, moe };

/// A model as its source states it: Hugging Face field names, counts in elements, widths in elements. What the source
/// does not say is absent; families (data/arch/*.yaml) supply defaults before resolve_model(). Plain value type.
struct ModelSpec {
  std::string name;
  std::string model_type;  ///< Hugging Face model_type, or the family's name

  std::optional<std::int64_t> hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  std::optional<std::int64_t> vocab_size, intermediate_size, max_position_embeddings;
  std::optional<bool> tie_word_embeddings;

  std::optional<bool> gated_ffn;          ///< three matrices (gate, up, down) instead of two
  std::optional<bool> attention_bias;     ///< bias on q, k, v
  std::optional<bool> attention_output_bias;
  std::optional<bool> ffn_bias;           ///< bias on the dense feed-forward matrices
  std::optional<bool> norm_bias;          ///< LayerNorm (weight and bias) instead of RMSNorm
  std::optional<std::int64_t> norms_per_layer;  ///< 2; 4 where the outputs are normed as well; 1 with parallel attention
  std::optional<bool> final_norm;
  std::optional<bool> embedding_norm;     ///< a norm right after the table (BLOOM)
  std::optional<bool> qk_norm;            ///< norm over head_dim of q and k, one weight per layer and side
  std::optional<bool> attention_sinks;    ///< one learned logit per head (gpt-oss)
  std::optional<bool> attention_output_gate;  ///< q projection twice as wide, half gates the output (Qwen3-Next)
  std::optional<bool> learned_positions;  ///< a table of max_position_embeddings x hidden_size
  std::optional<bool> parallel_residual;  ///< attention and feed-forward read the same norm (GPT-NeoX, Falcon)
  std::optional<double> hidden_dropout, attention_dropout;

  std::optional<std::int64_t> sliding_window;  ///< tokens a windowed layer sees
  std::vector<std::string> layer_types;        ///< per layer: full_attention, sliding_attention, linear_attention, chunked_attention
  std::optional<std::int64_t> sliding_window_pattern;    ///< every n-th layer is full, the others windowed
  std::optional<std::int64_t> full_attention_interval;   ///< every n-th layer is full, the others linear

  std::optional<std::int64_t> q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;

  std::optional<std::int64_t> num_experts, num_experts_per_tok, moe_intermediate_size;
  std::optional<std::int64_t> num_shared_experts, shared_expert_intermediate_size;  ///< the width is of one shared expert
  std::optional<std::int64_t> first_k_dense_replace;    ///< the first k layers are dense
  std::optional<std::int64_t> moe_layer_freq;           ///< every n-th layer is MoE (decoder_sparse_step, interleave_moe_layer_step)
  std::vector<std::int64_t> mlp_only_layers;            ///< indices that stay dense
  std::vector<std::int64_t> moe_layers;                 ///< explicit indices of MoE layers
  std::optional<std::int64_t> dense_intermediate_size;  ///< width of the dense layers where intermediate_size is the expert's (Llama 4)
  std::optional<bool> expert_bias, router_bias, shared_expert_gate;  ///< router_bias counts E learned or tracked elements

  std::optional<std::int64_t> linear_num_key_heads, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim,
      linear_conv_kernel_dim;

  std::optional<std::int64_t> mtp_depth;
  std::optional<std::int64_t> vision_parameters;  ///< of a tower that is not priced op by op

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Attention of one layer kind, no optionals. Widths in elements.
struct AttentionSpec {
  AttentionKind kind = AttentionKind::softmax;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t qk_dim = 0;  ///< width of one query/key head (MLA: nope + rope)
  std::int64_t v_dim = 0;   ///< width of one value head
  std::int64_t window = 0;  ///< tokens seen; 0 = all
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, rope_dim = 0, nope_dim = 0;  ///< MLA; q_lora_rank 0 = direct
  bool qkv_bias = false, output_bias = false, qk_norm = false, sinks = false, output_gate = false;
  std::int64_t linear_key_heads = 0, linear_value_heads = 0, linear_key_dim = 0, linear_value_dim = 0, conv_kernel = 0;
  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

/// Feed-forward part of one layer kind.
struct FfnSpec {
  FfnKind kind = FfnKind::dense;
  bool gated = true, bias = false;
  std::int64_t width = 0;  ///< dense width
  std::int64_t experts = 0, experts_per_token = 0, expert_width = 0;
  std::int64_t shared_experts = 0, shared_width = 0;  ///< shared_width: of one shared expert
  bool expert_bias = false, router_bias = false, shared_gate = false;
  friend bool operator==(const FfnSpec&, const FfnSpec&) = default;
};

/// What all layers of one kind have in common. Layers of equal kind cost the same.
struct LayerKind {
  AttentionSpec attention;
  FfnSpec ffn;
  std::int64_t norms = 2;  ///< norms over hidden_size in the layer
  bool norm_bias = false;
  bool parallel_residual = false;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// A model without optionals; only resolve_model() makes one. Immutable by convention. How many parameters it has is
/// not a field: the op table says so (count_parameters in nd/ops.hpp).
struct ResolvedModel {
  std::string name, model_type;
  std::int64_t hidden_size = 0, vocab_size = 0, max_positions = 0;
  std::vector<LayerKind> kinds;
  std::vector<int> layer_kind;  ///< kind index per body layer, in order
  std::int64_t mtp_depth = 0;
  int mtp_kind = 0;             ///< kind index of the layer inside an MTP block
  bool tied_embeddings = false, learned_positions = false, final_norm = true, norm_bias = false, embedding_norm = false;
  double hidden_dropout = 0.0, attention_dropout = 0.0;
  std::int64_t vision_parameters = 0;

  [[nodiscard]] std::int64_t layers() const { return static_cast<std::int64_t>(layer_kind.size()); }
  [[nodiscard]] bool has_experts() const {
    for (const auto& kind : kinds)
      if (kind.ffn.kind == FfnKind::moe) return true;
    return false;
  }
  friend bool operator==(const ResolvedModel&, const ResolvedModel&) = default;
};

/// Checks the stated facts against each other and derives the rest. Reports every problem at once: missing_field,
/// out_of_range, conflict. `where` names the source in the diagnostics.
[[nodiscard]] Result<ResolvedModel> resolve_model(const ModelSpec& spec, const SourceRef& where = {});

}  // namespace nd
