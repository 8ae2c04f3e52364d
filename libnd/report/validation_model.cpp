// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "formats/model_fields.hpp"
#include "report/validation_mapping.hpp"

namespace nd::report {
namespace {

template <class T>
void replace(std::optional<T>& target, const std::optional<T>& value) {
  if (value) target = value;
}

/// All matching entries of models.yaml on top of each other, later ones winning.
ModelRule merged_rule(const MeasuredRow& row, const RuleBook& book) {
  ModelRule out;
  for (const ModelRule& rule : book.models) {
    if (!rule.match.captures(row)) continue;
    if (!rule.model_type.empty()) out.model_type = rule.model_type;
    if (!rule.priceless.empty()) out.priceless = rule.priceless;
    out.ignore.insert(out.ignore.end(), rule.ignore.begin(), rule.ignore.end());
    formats::merge_model_fields(out.fill, rule.fill, formats::Precedence::replace);
  }
  return out;
}

ModelSpec from_columns(const MeasuredRow& row, const std::vector<std::string>& ignore) {
  ModelSpec spec;
  const auto take = [&](std::optional<std::int64_t>& target, const char* column, const std::optional<std::int64_t>& value) {
    if (std::find(ignore.begin(), ignore.end(), column) == ignore.end()) target = value;
  };
  take(spec.hidden_size, "hidden", row.hidden);
  take(spec.num_hidden_layers, "layers", row.layers);
  take(spec.num_attention_heads, "heads", row.heads);
  take(spec.num_key_value_heads, "kv_heads", row.kv_heads);
  take(spec.head_dim, "head_dim", row.head_dim);
  take(spec.intermediate_size, "ffn", row.ffn);
  take(spec.vocab_size, "vocab", row.vocab);
  if (row.experts.value_or(0) > 0) {
    spec.num_experts = row.experts;
    take(spec.num_experts_per_tok, "topk", row.topk);
    take(spec.moe_intermediate_size, "moe_ffn", row.moe_ffn);
    take(spec.num_shared_experts, "shared_experts", row.shared_experts);
  }
  return spec;
}

void apply_settings(const RowSettings& settings, ModelSpec& spec) {
  replace(spec.hidden_dropout, setting_real(settings, "hidden_dropout"));
  replace(spec.attention_dropout, setting_real(settings, "attention_dropout"));
  replace(spec.gated_ffn, setting_flag(settings, "gated_ffn"));
  replace(spec.tie_word_embeddings, setting_flag(settings, "tied_embeddings"));
  replace(spec.learned_positions, setting_flag(settings, "learned_positions"));
  replace(spec.mtp_depth, setting_integer(settings, "mtp_depth"));
  replace(spec.q_lora_rank, setting_integer(settings, "q_lora_rank"));
  replace(spec.kv_lora_rank, setting_integer(settings, "kv_lora_rank"));
  replace(spec.sliding_window, setting_integer(settings, "sliding_window"));
  if (!spec.num_experts) return;
  replace(spec.first_k_dense_replace, setting_integer(settings, "first_k_dense"));
  replace(spec.moe_layer_freq, setting_integer(settings, "moe_layer_freq"));
}

/// Rough parameter count of a softmax-attention model, elements: enough to tell two matrices from three and one table from two.
double rough_parameters(const ModelSpec& spec, bool gated, bool tied) {
  const auto real = [](const std::optional<std::int64_t>& value, double fallback) {
    return value ? static_cast<double>(*value) : fallback;
  };
  const double h = real(spec.hidden_size, 0), layers = real(spec.num_hidden_layers, 0), a = real(spec.num_attention_heads, 1);
  const double g = real(spec.num_key_value_heads, a), d = real(spec.head_dim, h / a), f = real(spec.intermediate_size, 4 * h);
  const double matrices = gated ? 3 : 2;
  double ffn = matrices * h * f;
  if (spec.num_experts) {
    const double fe = real(spec.moe_intermediate_size, f);
    ffn = matrices * h * fe * (*spec.num_experts > 0 ? static_cast<double>(*spec.num_experts) : 1.0) +
          real(spec.num_shared_experts, 0) * matrices * h * fe;
  }
  return layers * (2 * h * a * d + 2 * h * g * d + ffn) + real(spec.vocab_size, 0) * h * (tied ? 1 : 2);
}

/// Gate and tied table, where neither row nor architecture says, by what comes nearest to the stated parameter count.
void settle_shape(const MeasuredRow& row, ModelSpec& spec, std::vector<std::string>& assumptions) {
  const bool family_knows = !spec.model_type.empty();  // its gate comes with the family's defaults
  if ((spec.gated_ffn || family_knows) && (spec.tie_word_embeddings || !row.params_b)) return;
  const double four_wide = 4.0 * static_cast<double>(spec.hidden_size.value_or(0));
  const double width = static_cast<double>(spec.intermediate_size.value_or(0));
  bool gated = spec.gated_ffn.value_or(family_knows || width != four_wide);
  bool tied = spec.tie_word_embeddings.value_or(false);
  if (row.params_b && *row.params_b > 0 && !spec.kv_lora_rank) {
    double nearest = -1;
    for (const bool try_gated : {false, true}) {
      if (spec.gated_ffn ? *spec.gated_ffn != try_gated : family_knows && !try_gated) continue;
      for (const bool try_tied : {false, true}) {
        if (spec.tie_word_embeddings && *spec.tie_word_embeddings != try_tied) continue;
        const double off = std::abs(rough_parameters(spec, try_gated, try_tied) / (*row.params_b * 1e9) - 1.0);
        if (nearest >= 0 && off >= nearest) continue;
        nearest = off;
        gated = try_gated;
        tied = try_tied;
      }
    }
  }
  if (!spec.gated_ffn && !family_knows) {
    assumptions.emplace_back(gated ? "gated feed-forward assumed" : "plain feed-forward assumed");
    spec.gated_ffn = gated;
  }
  if (!spec.tie_word_embeddings && (row.params_b || !family_knows)) spec.tie_word_embeddings = tied;
}

}  // namespace

std::string map_model(const MeasuredRow& row, const RuleBook& book, const RowSettings& settings, MappedRow& out) {
  const ModelRule rule = merged_rule(row, book);
  if (!rule.priceless.empty()) return rule.priceless;
  ModelSpec& spec = out.model;
  spec = from_columns(row, rule.ignore);
  spec.name = row.model;
  spec.model_type = rule.model_type;
  // Expert facts of a family say nothing about a row that states no experts, unless the entry itself brings the count.
  ModelSpec facts = rule.fill;
  if (!spec.num_experts && !facts.num_experts) {
    facts.first_k_dense_replace.reset();
    facts.moe_layer_freq.reset();
    facts.shared_expert_gate.reset();
    facts.num_shared_experts.reset();
  }
  formats::merge_model_fields(spec, facts, formats::Precedence::fill_open);
  apply_settings(settings, spec);
  if (spec.kv_lora_rank) spec.head_dim.reset();  // latent attention has its own widths; the column holds hidden / heads
  if (spec.first_k_dense_replace && spec.num_hidden_layers && *spec.first_k_dense_replace >= *spec.num_hidden_layers)
    spec.first_k_dense_replace = std::max<std::int64_t>(0, *spec.num_hidden_layers - 1);

  for (const auto& [value, name] : {std::pair{&spec.hidden_size, "hidden size"}, std::pair{&spec.num_hidden_layers, "layers"},
                                    std::pair{&spec.num_attention_heads, "heads"}, std::pair{&spec.vocab_size, "vocabulary"}})
    if (!*value) return std::string("model shape not stated: ") + name;
  if (spec.num_experts && !spec.moe_intermediate_size) spec.moe_intermediate_size = spec.intermediate_size;
  if (!spec.intermediate_size && spec.moe_intermediate_size) spec.intermediate_size = spec.moe_intermediate_size;
  if (!spec.intermediate_size) {
    if (spec.gated_ffn.value_or(false)) return "model shape not stated: feed-forward width";
    spec.intermediate_size = 4 * *spec.hidden_size;
    out.assumptions.emplace_back("feed-forward width taken as 4 x hidden");
  }
  settle_shape(row, spec, out.assumptions);
  // A learned table has at least one row per token of the sequence; benchmark configurations size it to just that.
  if (!spec.max_position_embeddings && row.seq_len) spec.max_position_embeddings = std::llround(*row.seq_len);
  return {};
}

}  // namespace nd::report
