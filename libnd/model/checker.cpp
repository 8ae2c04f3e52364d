// SPDX-License-Identifier: Apache-2.0
#include "model/checker.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

namespace nd::model {
namespace {

// Limits of what can be a model; products of four of them stay far below 2^100, so doubles hold every bound check.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;       // elements: widths, vocabulary
constexpr std::int64_t kMaxCount = std::int64_t{1} << 20;      // heads, experts
constexpr std::int64_t kMaxLayers = std::int64_t{1} << 16;     // each is listed
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;  // tokens
constexpr std::int64_t kMaxVision = std::int64_t{1} << 50;     // elements of a tower

struct Bound {
  std::string_view field;
  std::optional<std::int64_t> ModelSpec::*member;
  std::int64_t low, high;
};

constexpr std::array kBounds{
    Bound{"hidden_size", &ModelSpec::hidden_size, 1, kMaxSize},
    Bound{"num_hidden_layers", &ModelSpec::num_hidden_layers, 1, kMaxLayers},
    Bound{"num_attention_heads", &ModelSpec::num_attention_heads, 1, kMaxCount},
    Bound{"num_key_value_heads", &ModelSpec::num_key_value_heads, 1, kMaxCount},
    Bound{"head_dim", &ModelSpec::head_dim, 1, kMaxSize},
    Bound{"vocab_size", &ModelSpec::vocab_size, 1, kMaxSize},
    Bound{"intermediate_size", &ModelSpec::intermediate_size, 1, kMaxSize},
    Bound{"max_position_embeddings", &ModelSpec::max_position_embeddings, 1, kMaxPositions},
    Bound{"norms_per_layer", &ModelSpec::norms_per_layer, 0, 8},
    Bound{"sliding_window", &ModelSpec::sliding_window, 1, kMaxPositions},
    Bound{"sliding_window_pattern", &ModelSpec::sliding_window_pattern, 1, kMaxCount},
    Bound{"full_attention_interval", &ModelSpec::full_attention_interval, 1, kMaxCount},
    Bound{"q_lora_rank", &ModelSpec::q_lora_rank, 0, kMaxSize},
    Bound{"kv_lora_rank", &ModelSpec::kv_lora_rank, 0, kMaxSize},
    Bound{"qk_nope_head_dim", &ModelSpec::qk_nope_head_dim, 0, kMaxSize},
    Bound{"qk_rope_head_dim", &ModelSpec::qk_rope_head_dim, 0, kMaxSize},
    Bound{"v_head_dim", &ModelSpec::v_head_dim, 1, kMaxSize},
    Bound{"num_experts", &ModelSpec::num_experts, 0, kMaxCount},
    Bound{"num_experts_per_tok", &ModelSpec::num_experts_per_tok, 1, kMaxCount},
    Bound{"moe_intermediate_size", &ModelSpec::moe_intermediate_size, 1, kMaxSize},
    Bound{"num_shared_experts", &ModelSpec::num_shared_experts, 0, kMaxCount},
    Bound{"shared_expert_intermediate_size", &ModelSpec::shared_expert_intermediate_size, 0, kMaxSize},
    Bound{"first_k_dense_replace", &ModelSpec::first_k_dense_replace, 0, kMaxCount},
    Bound{"moe_layer_freq", &ModelSpec::moe_layer_freq, 1, kMaxCount},
    Bound{"dense_intermediate_size", &ModelSpec::dense_intermediate_size, 1, kMaxSize},
    Bound{"linear_num_key_heads", &ModelSpec::linear_num_key_heads, 1, kMaxCount},
    Bound{"linear_num_value_heads", &ModelSpec::linear_num_value_heads, 1, kMaxCount},
    Bound{"linear_key_head_dim", &ModelSpec::linear_key_head_dim, 1, kMaxSize},
    Bound{"linear_value_head_dim", &ModelSpec::linear_value_head_dim, 1, kMaxSize},
    Bound{"linear_conv_kernel_dim", &ModelSpec::linear_conv_kernel_dim, 1, 1024},
    Bound{"mtp_depth", &ModelSpec::mtp_depth, 0, 64},
    Bound{"vision_parameters", &ModelSpec::vision_parameters, 0, kMaxVision},
};

void check_bounds(const ModelSpec& spec, Checker& check) {
  for (const Bound& bound : kBounds) {
    const auto& value = spec.*bound.member;
    if (!value || (*value >= bound.low && *value <= bound.high)) continue;
    check.error(bound.field, Errc::out_of_range, fmt::format("must be between {} and {}, got {}", bound.low, bound.high, *value));
  }
  const auto fraction = [&check](std::string_view field, const std::optional<double>& value) {
    if (value && !(*value >= 0.0 && *value < 1.0))
      check.error(field, Errc::out_of_range, fmt::format("must be at least 0 and below 1, got {}", *value));
  };
  fraction("hidden_dropout", spec.hidden_dropout);
  fraction("attention_dropout", spec.attention_dropout);
}

void check_required(const ModelSpec& spec, Checker& check) {
  for (const Bound& bound : {kBounds[0], kBounds[1], kBounds[2], kBounds[5]})
    if (!(spec.*bound.member)) check.error(bound.field, Errc::missing_field, "is required");
}

bool positive(const std::optional<std::int64_t>& value) { return value && *value > 0; }

void check_attention(const ModelSpec& spec, Checker& check) {
  if (positive(spec.kv_lora_rank)) {
    if (!positive(spec.qk_nope_head_dim)) check.error("qk_nope_head_dim", Errc::missing_field, "is required with kv_lora_rank");
    if (!spec.qk_rope_head_dim) check.error("qk_rope_head_dim", Errc::missing_field, "is required with kv_lora_rank");
    if (!spec.v_head_dim) check.error("v_head_dim", Errc::missing_field, "is required with kv_lora_rank");
    return;
  }
  if (!positive(spec.num_attention_heads)) return;
  const std::int64_t heads = *spec.num_attention_heads;
  if (positive(spec.num_key_value_heads) && heads % *spec.num_key_value_heads != 0)
    check.error("num_key_value_heads", Errc::conflict,
                fmt::format("{} heads are no multiple of {} KV heads", heads, *spec.num_key_value_heads));
  if (!spec.head_dim && positive(spec.hidden_size) && *spec.hidden_size % heads != 0)
    check.error("head_dim", Errc::missing_field,
                fmt::format("is required: hidden_size {} is no multiple of {} heads", *spec.hidden_size, heads));
}

void check_linear(const ModelSpec& spec, Checker& check) {
  const std::array<std::pair<std::string_view, bool>, 5> fields{{
      {"linear_num_key_heads", spec.linear_num_key_heads.has_value()},
      {"linear_num_value_heads", spec.linear_num_value_heads.has_value()},
      {"linear_key_head_dim", spec.linear_key_head_dim.has_value()},
      {"linear_value_head_dim", spec.linear_value_head_dim.has_value()},
      {"linear_conv_kernel_dim", spec.linear_conv_kernel_dim.has_value()},
  }};
  std::size_t stated = 0;
  for (const auto& [name, has] : fields) stated += has ? 1U : 0U;
  if (stated != 0 && stated != fields.size())
    for (const auto& [name, has] : fields)
      if (!has) check.error(name, Errc::missing_field, "is required when other linear_* fields are stated");
  if (positive(spec.linear_num_key_heads) && positive(spec.linear_num_value_heads) &&
      *spec.linear_num_value_heads % *spec.linear_num_key_heads != 0)
    check.error("linear_num_value_heads", Errc::conflict,
                fmt::format("{} value heads are no multiple of {} key heads", *spec.linear_num_value_heads, *spec.linear_num_key_heads));
}

void check_experts(const ModelSpec& spec, Checker& check) {
  const std::int64_t experts = spec.num_experts.value_or(0);
  if (experts <= 1) return;
  if (!spec.moe_intermediate_size && !spec.intermediate_size)
    check.error("moe_intermediate_size", Errc::missing_field, fmt::format("no feed-forward width for {} routed experts", experts),
                "state moe_intermediate_size or intermediate_size");
  if (spec.num_experts_per_tok && *spec.num_experts_per_tok > experts)
    check.error("num_experts_per_tok", Errc::conflict,
                fmt::format("a token cannot use {} of {} experts", *spec.num_experts_per_tok, experts));
  if (!spec.num_hidden_layers) return;
  const auto check_indices = [&](std::string_view field, const std::vector<std::int64_t>& indices) {
    for (const std::int64_t index : indices)
      if (index < 0 || index >= *spec.num_hidden_layers)
        check.error(field, Errc::out_of_range, fmt::format("layer {} is not among {} layers", index, *spec.num_hidden_layers));
  };
  check_indices("moe_layers", spec.moe_layers);
}

}  // namespace

void Checker::error(std::string_view field, Errc code, std::string message, std::string hint) {
  SourceRef place = where_;
  place.path = place.path.empty() ? std::string(field) : place.path + "." + std::string(field);
  problems_.push_back(make_diagnostic(code, std::move(place), std::move(message), std::move(hint)));
}

void check_ranges(const ModelSpec& spec, Checker& check) {
  check_required(spec, check);
  check_bounds(spec, check);
  check_attention(spec, check);
  check_linear(spec, check);
  check_experts(spec, check);
}

}  // namespace nd::model
