// SPDX-License-Identifier: Apache-2.0
#include "verify/facts.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>

#include "core/text.hpp"
#include "verify/expected.hpp"

namespace nd::verify {

namespace {

class Facts {
 public:
  Facts(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors, Verification& out)
      : model_(model), tensors_(tensors), out_(out), layers_(find_naming(model, tensors).prefix + "layers.") {
    collect_layers();
  }

  void run() {
    ModelSpec& spec = out_.measured;
    fact("hidden_size", model_.hidden_size, dimension({"embed_tokens.weight"}, 1), spec.hidden_size);
    fact("vocab_size", model_.vocab_size, dimension({"embed_tokens.weight"}, 0), spec.vocab_size);
    fact("num_hidden_layers", model_.layers(), body_layers(), spec.num_hidden_layers);
    attention(spec);
    feed_forward(spec);
    const bool head = std::any_of(tensors_.begin(), tensors_.end(), [](const auto& entry) { return entry.first.ends_with("lm_head.weight"); });
    if (!tensors_.empty()) {
      out_.facts.push_back({"tie_word_embeddings", model_.tied_embeddings ? 1 : 0, head ? 0 : 1});
      // A copy of the tied table may be stored; only its absence proves something.
      if (!head) spec.tie_word_embeddings = true;
      if (head && model_.tied_embeddings) out_.facts.back().measured = 1;
    }
    if (model_.mtp_depth > 0 || mtp_layers_ > 0) fact("mtp_depth", model_.mtp_depth, mtp_layers_, spec.mtp_depth);
  }

 private:
  void collect_layers() {
    std::set<std::int64_t> all, mtp;
    for (const auto& [name, tensor] : tensors_) {
      if (!name.starts_with(layers_)) continue;
      const auto dot = name.find('.', layers_.size());
      const auto index = dot == std::string::npos ? std::nullopt : core::parse_integer(name.substr(layers_.size(), dot - layers_.size()));
      if (!index || *index < 0) continue;
      all.insert(*index);
      if (name.ends_with(".eh_proj.weight")) mtp.insert(*index);
      by_suffix_.emplace(name.substr(dot + 1), &tensor);
    }
    mtp_layers_ = static_cast<std::int64_t>(mtp.size());
    layer_count_ = static_cast<std::int64_t>(all.size());
  }

  [[nodiscard]] std::optional<std::int64_t> body_layers() const {
    if (layer_count_ == 0) return std::nullopt;
    return layer_count_ - mtp_layers_;
  }

  /// Of the first tensor whose name below its layer, or whose whole name, ends so.
  [[nodiscard]] std::optional<std::int64_t> dimension(std::initializer_list<std::string_view> names, std::size_t axis) const {
    for (const std::string_view name : names) {
      if (const auto found = by_suffix_.find(std::string(name)); found != by_suffix_.end() && axis < found->second->shape.size()) return found->second->shape[axis];
      for (const auto& [full, tensor] : tensors_)
        if (full.size() > name.size() && full.ends_with(name) && full[full.size() - name.size() - 1] == '.' && axis < tensor.shape.size()) return tensor.shape[axis];
    }
    return std::nullopt;
  }

  void fact(const std::string& name, std::int64_t configured, std::optional<std::int64_t> measured, std::optional<std::int64_t>& into) {
    out_.facts.push_back({name, configured, measured});
    if (measured && *measured != configured) into = measured;
  }

  [[nodiscard]] const AttentionSpec* softmax() const {
    for (const LayerKind& kind : model_.kinds)
      if (kind.attention.kind == AttentionKind::softmax) return &kind.attention;
    return nullptr;
  }

  void attention(ModelSpec& spec) {
    if (const AttentionSpec* a = softmax()) {
      // The width of a head shows only in its norm; without one the configured width divides the rows.
      const auto normed = dimension({"self_attn.q_norm.weight"}, 0);
      fact("head_dim", a->qk_dim, normed, spec.head_dim);
      const std::int64_t width = std::max<std::int64_t>(1, normed.value_or(a->qk_dim));
      const auto heads = [&](std::string_view name, std::int64_t times) -> std::optional<std::int64_t> {
        const auto rows = dimension({name}, 0);
        if (!rows) return std::nullopt;
        return *rows / (width * times);
      };
      fact("num_attention_heads", a->heads, heads("self_attn.q_proj.weight", a->output_gate ? 2 : 1), spec.num_attention_heads);
      fact("num_key_value_heads", a->kv_heads, heads("self_attn.k_proj.weight", 1), spec.num_key_value_heads);
    }
    for (const LayerKind& kind : model_.kinds) {
      if (kind.attention.kind != AttentionKind::mla) continue;
      if (kind.attention.q_lora_rank > 0) fact("q_lora_rank", kind.attention.q_lora_rank, dimension({"self_attn.q_a_layernorm.weight"}, 0), spec.q_lora_rank);
      fact("kv_lora_rank", kind.attention.kv_lora_rank, dimension({"self_attn.kv_a_layernorm.weight"}, 0), spec.kv_lora_rank);
      break;
    }
  }

  void feed_forward(ModelSpec& spec) {
    bool dense = false, moe = false;
    for (const LayerKind& kind : model_.kinds) {
      const FfnSpec& f = kind.ffn;
      if (f.kind == FfnKind::dense && !dense) {
        dense = true;
        fact("intermediate_size", f.width, dimension({"mlp.down_proj.weight", "feed_forward.down_proj.weight"}, 1), spec.dense_intermediate_size ? spec.dense_intermediate_size : spec.intermediate_size);
      }
      if (f.kind != FfnKind::moe || moe) continue;
      moe = true;
      fact("num_experts", f.experts, dimension({"mlp.gate.weight", "mlp.router.weight", "block_sparse_moe.gate.weight", "feed_forward.router.weight"}, 0), spec.num_experts);
      auto width = dimension({"mlp.experts.0.down_proj.weight", "block_sparse_moe.experts.0.w2.weight"}, 1);
      if (!width) width = fused_width(f);
      fact("moe_intermediate_size", f.expert_width, width, spec.moe_intermediate_size);
      if (f.shared_experts > 0) {
        const auto shared = dimension({"mlp.shared_experts.down_proj.weight", "mlp.shared_expert.down_proj.weight", "feed_forward.shared_expert.down_proj.weight"}, 1);
        out_.facts.push_back({"shared experts' width", f.shared_experts * f.shared_width, shared});
        if (shared && *shared != f.shared_experts * f.shared_width && *shared % f.shared_experts == 0) spec.shared_expert_intermediate_size = *shared / f.shared_experts;
      }
    }
  }

  /// A fused down projection is experts x width x hidden or experts x hidden x width.
  [[nodiscard]] std::optional<std::int64_t> fused_width(const FfnSpec& f) const {
    for (const std::string_view name : {"mlp.experts.down_proj", "feed_forward.experts.down_proj"}) {
      const auto a = dimension({name}, 1), b = dimension({name}, 2);
      if (!a || !b) continue;
      if (*a == model_.hidden_size && *b != model_.hidden_size) return b;
      if (*b == model_.hidden_size && *a != model_.hidden_size) return a;
      return f.expert_width == *a ? a : b;
    }
    return std::nullopt;
  }

  const ResolvedModel& model_;
  const std::map<std::string, CensusTensor>& tensors_;
  Verification& out_;
  std::string layers_;
  std::map<std::string, const CensusTensor*> by_suffix_;  ///< first layer that has it
  std::int64_t layer_count_ = 0, mtp_layers_ = 0;
};

}  // namespace

void measure_facts(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors, Verification& out) { Facts(model, tensors, out).run(); }

}  // namespace nd::verify
