// SPDX-License-Identifier: Apache-2.0
// Names and shapes of tensors as the modelling files of Hugging Face transformers give them (modeling_llama, _mixtral, _gpt_oss, _llama4,
// _deepseek_v3, _qwen3_moe, _qwen3_next, _gemma2, _gemma3, _glm4_moe).
#include "verify/names.hpp"

#include <algorithm>
#include <array>

namespace nd::verify {

namespace {

using Shape = std::vector<std::int64_t>;

/// Collects the tensors of one variant.
class Tensors {
 public:
  explicit Tensors(std::string part) : part_(std::move(part)) {}
  Tensors& add(const std::string& name, Shape shape, bool when = true) {
    if (when) out_.push_back({name, std::move(shape), part_, false});
    return *this;
  }
  /// A Linear: weight (out, in) and, when it has one, its bias.
  Tensors& linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias = false) {
    return add(name + ".weight", {out, in}).add(name + ".bias", {out}, bias);
  }
  /// Ends the list.
  [[nodiscard]] NameVariant variant(std::string families = {}) { return {std::move(families), std::move(out_)}; }

 private:
  std::string part_;
  std::vector<NamedTensor> out_;
};

NameGroup softmax_attention(const ResolvedModel& model, const AttentionSpec& a) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t queries = a.heads * a.qk_dim * (a.output_gate ? 2 : 1), keys = a.kv_heads * a.qk_dim, values = a.kv_heads * a.v_dim;
  const auto around = [&](Tensors tensors) {
    return std::move(tensors.linear("self_attn.o_proj", h, a.heads * a.v_dim, a.output_bias)
                         .add("self_attn.q_norm.weight", {a.qk_dim}, a.qk_norm)
                         .add("self_attn.k_norm.weight", {a.qk_dim}, a.qk_norm)
                         .add("self_attn.sinks", {a.heads}, a.sinks));
  };
  Tensors separate("attention"), fused("attention");
  separate.linear("self_attn.q_proj", queries, h, a.qkv_bias).linear("self_attn.k_proj", keys, h, a.qkv_bias).linear("self_attn.v_proj", values, h, a.qkv_bias);
  fused.linear("self_attn.qkv_proj", queries + keys + values, h, a.qkv_bias);
  return {around(std::move(separate)).variant(), around(std::move(fused)).variant("phi3")};
}

NameGroup mla(const ResolvedModel& model, const AttentionSpec& a) {
  const std::int64_t h = model.hidden_size, queries = a.heads * (a.nope_dim + a.rope_dim);
  Tensors out("attention");
  if (a.q_lora_rank > 0) {
    out.linear("self_attn.q_a_proj", a.q_lora_rank, h, a.qkv_bias).add("self_attn.q_a_layernorm.weight", {a.q_lora_rank}).linear("self_attn.q_b_proj", queries, a.q_lora_rank);
  } else {
    out.linear("self_attn.q_proj", queries, h);
  }
  out.linear("self_attn.kv_a_proj_with_mqa", a.kv_lora_rank + a.rope_dim, h, a.qkv_bias)
      .add("self_attn.kv_a_layernorm.weight", {a.kv_lora_rank})
      .linear("self_attn.kv_b_proj", a.heads * (a.nope_dim + a.v_dim), a.kv_lora_rank)
      .linear("self_attn.o_proj", h, a.heads * a.v_dim, a.output_bias);
  return {out.variant()};
}

NameGroup gated_delta(const ResolvedModel& model, const AttentionSpec& a) {
  const std::int64_t h = model.hidden_size, keys = a.linear_key_heads * a.linear_key_dim, values = a.linear_value_heads * a.linear_value_dim;
  const std::int64_t mixed = 2 * keys + values, heads = a.linear_value_heads;
  const auto around = [&](Tensors tensors) {
    return std::move(tensors.add("linear_attn.conv1d.weight", {mixed, 1, a.conv_kernel})
                         .add("linear_attn.A_log", {heads})
                         .add("linear_attn.dt_bias", {heads})
                         .add("linear_attn.norm.weight", {a.linear_value_dim})
                         .linear("linear_attn.out_proj", h, values));
  };
  Tensors joined("linear attention"), split("linear attention");
  joined.linear("linear_attn.in_proj_qkvz", mixed + values, h).linear("linear_attn.in_proj_ba", 2 * heads, h);
  split.linear("linear_attn.in_proj_qkv", mixed, h).linear("linear_attn.in_proj_z", values, h).linear("linear_attn.in_proj_b", heads, h).linear("linear_attn.in_proj_a", heads, h);
  return {around(std::move(joined)).variant("qwen3_next"), around(std::move(split)).variant("qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text")};
}

NameGroup dense_ffn(const ResolvedModel& model, const FfnSpec& f) {
  const std::int64_t h = model.hidden_size;
  const auto named = [&](const std::string& at) {
    Tensors out("dense ffn");
    if (f.gated) out.linear(at + ".gate_proj", f.width, h, f.bias);
    out.linear(at + ".up_proj", f.width, h, f.bias).linear(at + ".down_proj", h, f.width, f.bias);
    return out;
  };
  NameGroup out{named("mlp").variant(), named("feed_forward").variant("llama4 llama4_text")};
  if (f.gated) out.push_back(Tensors("dense ffn").linear("mlp.gate_up_proj", 2 * f.width, h, f.bias).linear("mlp.down_proj", h, f.width, f.bias).variant("phi3"));
  return out;
}

NameGroup router(const ResolvedModel& model, const FfnSpec& f) {
  const std::int64_t h = model.hidden_size, e = f.experts;
  const auto plain = [&](const std::string& name, const std::string& bias, const std::string& families) {
    return Tensors("router").add(name + ".weight", {e, h}).add(bias, {e}, f.router_bias).variant(families);
  };
  return {plain("mlp.gate", "mlp.gate.e_score_correction_bias", ""), plain("mlp.router", "mlp.router.bias", "gpt_oss"),
          plain("block_sparse_moe.gate", "block_sparse_moe.gate.bias", "mixtral"), plain("feed_forward.router", "feed_forward.router.bias", "llama4 llama4_text")};
}

NameVariant single_experts(const ResolvedModel& model, const FfnSpec& f, const std::string& at, const std::array<std::string, 3>& names, const std::string& families) {
  Tensors out("experts");
  for (std::int64_t e = 0; e < f.experts; ++e) {
    const std::string expert = at + ".experts." + std::to_string(e) + ".";
    if (f.gated) out.linear(expert + names[0], f.expert_width, model.hidden_size, f.expert_bias);
    out.linear(expert + names[1], f.expert_width, model.hidden_size, f.expert_bias).linear(expert + names[2], model.hidden_size, f.expert_width, f.expert_bias);
  }
  return out.variant(families);
}

NameGroup experts(const ResolvedModel& model, const FfnSpec& f) {
  const std::int64_t h = model.hidden_size, w = f.expert_width, e = f.experts, first = f.gated ? 2 * w : w;
  const auto fused = [&](const std::string& at, const Shape& in, const Shape& down, const std::string& families) {
    return Tensors("experts")
        .add(at + ".gate_up_proj", in)
        .add(at + ".gate_up_proj_bias", {e, first}, f.expert_bias)
        .add(at + ".down_proj", down)
        .add(at + ".down_proj_bias", {e, h}, f.expert_bias)
        .variant(families);
  };
  return {single_experts(model, f, "mlp", {"gate_proj", "up_proj", "down_proj"}, ""),
          single_experts(model, f, "block_sparse_moe", {"w1", "w3", "w2"}, "mixtral"),
          fused("mlp.experts", {e, h, first}, {e, w, h}, "gpt_oss"),
          fused("mlp.experts", {e, first, h}, {e, h, w}, "qwen3_5_moe qwen3_5_moe_text"),
          fused("feed_forward.experts", {e, h, first}, {e, w, h}, "llama4 llama4_text")};
}

NameGroup shared_experts(const ResolvedModel& model, const FfnSpec& f) {
  const std::int64_t h = model.hidden_size, w = f.shared_experts * f.shared_width;
  const auto named = [&](const std::string& at, const std::string& gate, const std::string& families) {
    Tensors out("shared experts");
    if (f.gated) out.linear(at + ".gate_proj", w, h);
    out.linear(at + ".up_proj", w, h).linear(at + ".down_proj", h, w);
    if (f.shared_gate) out.linear(gate, 1, h);
    return out.variant(families);
  };
  return {named("mlp.shared_experts", "mlp.shared_experts_gate", ""), named("mlp.shared_expert", "mlp.shared_expert_gate", "qwen2_moe qwen3_next qwen3_5_moe qwen3_5_moe_text"),
          named("feed_forward.shared_expert", "feed_forward.shared_expert_gate", "llama4 llama4_text")};
}

NameGroup norms(const ResolvedModel& model, const LayerKind& kind) {
  static const std::array<std::string, 4> kNames{"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"};
  Tensors out("norms");
  for (std::size_t i = 0; i < std::min<std::size_t>(kNames.size(), static_cast<std::size_t>(kind.norms)); ++i)
    out.add(kNames[i] + ".weight", {model.hidden_size}).add(kNames[i] + ".bias", {model.hidden_size}, kind.norm_bias);
  return {out.variant()};
}

}  // namespace

std::vector<NameGroup> layer_groups(const ResolvedModel& model, const LayerKind& kind) {
  std::vector<NameGroup> out{norms(model, kind)};
  if (kind.attention.kind == AttentionKind::softmax) out.push_back(softmax_attention(model, kind.attention));
  if (kind.attention.kind == AttentionKind::mla) out.push_back(mla(model, kind.attention));
  if (kind.attention.kind == AttentionKind::gated_delta) out.push_back(gated_delta(model, kind.attention));
  if (kind.ffn.kind == FfnKind::dense) out.push_back(dense_ffn(model, kind.ffn));
  if (kind.ffn.kind == FfnKind::moe) {
    out.push_back(router(model, kind.ffn));
    out.push_back(experts(model, kind.ffn));
    if (kind.ffn.shared_experts > 0) out.push_back(shared_experts(model, kind.ffn));
  }
  return out;
}

std::vector<NameGroup> model_groups(const ResolvedModel& model) {
  const std::int64_t h = model.hidden_size;
  std::vector<NameGroup> out{{Tensors("embedding").add("embed_tokens.weight", {model.vocab_size, h}).variant()}};
  if (model.learned_positions) out.push_back({Tensors("positions").add("embed_positions.weight", {model.max_positions, h}).variant()});
  if (model.final_norm) out.push_back({Tensors("final norm").add("norm.weight", {h}).add("norm.bias", {h}, model.norm_bias).variant()});
  NameVariant head = Tensors("head").add("lm_head.weight", {model.vocab_size, h}).variant();
  head.tensors.front().copy = model.tied_embeddings;
  out.push_back({std::move(head)});
  return out;
}

std::vector<NameGroup> mtp_groups(const ResolvedModel& model) {
  const std::int64_t h = model.hidden_size;
  NameVariant table = Tensors("mtp").add("embed_tokens.weight", {model.vocab_size, h}).add("shared_head.head.weight", {model.vocab_size, h}).variant();
  for (auto& tensor : table.tensors) tensor.copy = true;
  return {{Tensors("mtp").add("enorm.weight", {h}).add("hnorm.weight", {h}).linear("eh_proj", h, 2 * h).add("shared_head.norm.weight", {h}).variant()}, {std::move(table)}};
}

std::string kind_text(const LayerKind& kind) {
  std::string out;
  switch (kind.attention.kind) {
    case AttentionKind::softmax: out = kind.attention.window > 0 ? "windowed attention" : "softmax attention"; break;
    case AttentionKind::mla: out = "latent attention"; break;
    case AttentionKind::gated_delta: out = "gated delta"; break;
    case AttentionKind::none: out = "no attention"; break;
  }
  switch (kind.ffn.kind) {
    case FfnKind::dense: return out + " + dense";
    case FfnKind::moe: return out + " + moe";
    case FfnKind::none: return out;
  }
  return out;
}

std::string part_of(std::string_view op) {
  struct Prefix {
    std::string_view prefix, part;
  };
  constexpr std::array<Prefix, 10> kPrefixes{{{"attention", "attention"}, {"mla", "attention"}, {"qk norm", "attention"}, {"linear", "linear attention"}, {"norms", "norms"},
                                              {"router", "router"}, {"expert", "experts"}, {"shared", "shared experts"}, {"ffn", "dense ffn"}, {"mtp", "mtp"}}};
  for (const Prefix& entry : kPrefixes)
    if (op.starts_with(entry.prefix)) return std::string(entry.part);
  return std::string(op);
}

}  // namespace nd::verify
