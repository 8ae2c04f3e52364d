// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "model/checker.hpp"
#include "model/kinds.hpp"
#include "nd/model_spec.hpp"

namespace nd {
namespace {

/// Upper bound of the parameters, in doubles so that it cannot overflow. Only to refuse absurd products of allowed fields.
double parameter_bound(const ResolvedModel& model) {
  const double hidden = static_cast<double>(model.hidden_size);
  double sum = 2.0 * static_cast<double>(model.vocab_size) * hidden;
  for (const int index : model.layer_kind) {
    const LayerKind& kind = model.kinds[static_cast<std::size_t>(index)];
    const AttentionSpec& a = kind.attention;
    const FfnSpec& f = kind.ffn;
    const double heads = static_cast<double>(std::max(a.heads, a.linear_value_heads)) + static_cast<double>(a.linear_key_heads);
    const double width = static_cast<double>(a.qk_dim + a.v_dim + a.linear_key_dim + a.linear_value_dim);
    const double latents = static_cast<double>(a.q_lora_rank + a.kv_lora_rank);
    const double columns = static_cast<double>(f.width) + static_cast<double>(f.experts) * static_cast<double>(f.expert_width) +
                           static_cast<double>(f.shared_experts) * static_cast<double>(f.shared_width);
    sum += 4.0 * (hidden + latents) * (heads * width + latents) + 3.0 * hidden * columns;
  }
  return sum;
}

}  // namespace

Result<ResolvedModel> resolve_model(const ModelSpec& spec, const SourceRef& where) {
  model::Checker check(where);
  model::check_ranges(spec, check);
  // Derived facts divide by these; without them only follow-up errors would come.
  if (check.failed()) return std::move(check).error();

  ResolvedModel out;
  out.name = spec.name.empty() ? (spec.model_type.empty() ? std::string("custom") : spec.model_type) : spec.name;
  out.model_type = spec.model_type;
  out.hidden_size = *spec.hidden_size;
  out.vocab_size = *spec.vocab_size;
  out.max_positions = spec.max_position_embeddings.value_or(0);
  out.mtp_depth = spec.mtp_depth.value_or(0);
  out.tied_embeddings = spec.tie_word_embeddings.value_or(false);
  out.learned_positions = spec.learned_positions.value_or(false);
  out.final_norm = spec.final_norm.value_or(true);
  out.norm_bias = spec.norm_bias.value_or(false);
  out.embedding_norm = spec.embedding_norm.value_or(false);
  out.hidden_dropout = spec.hidden_dropout.value_or(0.0);
  out.attention_dropout = spec.attention_dropout.value_or(0.0);
  out.vision_parameters = spec.vision_parameters.value_or(0);
  if (out.learned_positions && out.max_positions == 0)
    check.error("max_position_embeddings", Errc::missing_field, "is required for a table of learned positions");

  for (LayerKind& kind : model::layer_kinds(spec, check)) {
    const auto known = std::find(out.kinds.begin(), out.kinds.end(), kind);
    out.layer_kind.push_back(static_cast<int>(known - out.kinds.begin()));
    if (known == out.kinds.end()) out.kinds.push_back(std::move(kind));
  }
  if (check.failed()) return std::move(check).error();

  // An MTP block repeats the last body layer; hybrids use their softmax layer there (published Qwen3-Next checkpoints).
  out.mtp_kind = out.layer_kind.back();
  for (auto it = out.layer_kind.rbegin(); it != out.layer_kind.rend(); ++it) {
    if (out.kinds[static_cast<std::size_t>(*it)].attention.kind == AttentionKind::gated_delta) continue;
    out.mtp_kind = *it;
    break;
  }
  constexpr double kParameterLimit = 0x1p62;  // totals are kept in 63 bits
  if (parameter_bound(out) >= kParameterLimit)
    return make_error(Errc::out_of_range, where, "the model would have more than 2^62 parameters", "check the widths and counts");
  return out;
}

}  // namespace nd
