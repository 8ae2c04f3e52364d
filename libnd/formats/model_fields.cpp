// SPDX-License-Identifier: Apache-2.0
#include "formats/model_fields.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>

namespace nd::formats {
namespace {

using IntegerMember = std::optional<std::int64_t> ModelSpec::*;
using FlagMember = std::optional<bool> ModelSpec::*;
using RealMember = std::optional<double> ModelSpec::*;
using IntegersMember = std::vector<std::int64_t> ModelSpec::*;
using TextsMember = std::vector<std::string> ModelSpec::*;

/// One field of ModelSpec: its name, where it is, and for integers whether 0 says something.
struct Field {
  std::string_view name;
  std::variant<IntegerMember, FlagMember, RealMember, IntegersMember, TextsMember> member;
  bool zero_allowed = false;
};

constexpr std::array kFields{
    Field{"hidden_size", &ModelSpec::hidden_size},
    Field{"num_hidden_layers", &ModelSpec::num_hidden_layers},
    Field{"num_attention_heads", &ModelSpec::num_attention_heads},
    Field{"num_key_value_heads", &ModelSpec::num_key_value_heads},
    Field{"head_dim", &ModelSpec::head_dim},
    Field{"vocab_size", &ModelSpec::vocab_size},
    Field{"intermediate_size", &ModelSpec::intermediate_size},
    Field{"max_position_embeddings", &ModelSpec::max_position_embeddings},
    Field{"tie_word_embeddings", &ModelSpec::tie_word_embeddings},
    Field{"gated_ffn", &ModelSpec::gated_ffn},
    Field{"attention_bias", &ModelSpec::attention_bias},
    Field{"attention_output_bias", &ModelSpec::attention_output_bias},
    Field{"ffn_bias", &ModelSpec::ffn_bias},
    Field{"norm_bias", &ModelSpec::norm_bias},
    Field{"norms_per_layer", &ModelSpec::norms_per_layer, true},
    Field{"final_norm", &ModelSpec::final_norm},
    Field{"embedding_norm", &ModelSpec::embedding_norm},
    Field{"qk_norm", &ModelSpec::qk_norm},
    Field{"attention_sinks", &ModelSpec::attention_sinks},
    Field{"attention_output_gate", &ModelSpec::attention_output_gate},
    Field{"learned_positions", &ModelSpec::learned_positions},
    Field{"parallel_residual", &ModelSpec::parallel_residual},
    Field{"hidden_dropout", &ModelSpec::hidden_dropout},
    Field{"attention_dropout", &ModelSpec::attention_dropout},
    Field{"sliding_window", &ModelSpec::sliding_window},
    Field{"layer_types", &ModelSpec::layer_types},
    Field{"sliding_window_pattern", &ModelSpec::sliding_window_pattern},
    Field{"full_attention_interval", &ModelSpec::full_attention_interval},
    Field{"q_lora_rank", &ModelSpec::q_lora_rank, true},
    Field{"kv_lora_rank", &ModelSpec::kv_lora_rank, true},
    Field{"qk_nope_head_dim", &ModelSpec::qk_nope_head_dim, true},
    Field{"qk_rope_head_dim", &ModelSpec::qk_rope_head_dim, true},
    Field{"v_head_dim", &ModelSpec::v_head_dim},
    Field{"num_experts", &ModelSpec::num_experts, true},
    Field{"num_experts_per_tok", &ModelSpec::num_experts_per_tok},
    Field{"moe_intermediate_size", &ModelSpec::moe_intermediate_size},
    Field{"num_shared_experts", &ModelSpec::num_shared_experts, true},
    Field{"shared_expert_intermediate_size", &ModelSpec::shared_expert_intermediate_size, true},
    Field{"first_k_dense_replace", &ModelSpec::first_k_dense_replace, true},
    Field{"moe_layer_freq", &ModelSpec::moe_layer_freq},
    Field{"mlp_only_layers", &ModelSpec::mlp_only_layers},
    Field{"moe_layers", &ModelSpec::moe_layers},
    Field{"dense_intermediate_size", &ModelSpec::dense_intermediate_size},
    Field{"expert_bias", &ModelSpec::expert_bias},
    Field{"router_bias", &ModelSpec::router_bias},
    Field{"shared_expert_gate", &ModelSpec::shared_expert_gate},
    Field{"linear_num_key_heads", &ModelSpec::linear_num_key_heads},
    Field{"linear_num_value_heads", &ModelSpec::linear_num_value_heads},
    Field{"linear_key_head_dim", &ModelSpec::linear_key_head_dim},
    Field{"linear_value_head_dim", &ModelSpec::linear_value_head_dim},
    Field{"linear_conv_kernel_dim", &ModelSpec::linear_conv_kernel_dim},
    Field{"mtp_depth", &ModelSpec::mtp_depth, true},
    Field{"vision_parameters", &ModelSpec::vision_parameters, true},
};

const Field* find_field(std::string_view name) {
  const auto it = std::find_if(kFields.begin(), kFields.end(), [name](const Field& field) { return field.name == name; });
  return it == kFields.end() ? nullptr : &*it;
}

template <class T>
bool stated(const std::optional<T>& value) {
  return value.has_value();
}
template <class T>
bool stated(const std::vector<T>& value) {
  return !value.empty();
}

/// Assigns where something was read; what was not readable is in the sink already.
struct Reader {
  MapReader& map;
  std::string_view key;
  ModelSpec& spec;
  bool zero_allowed;

  void operator()(IntegerMember member) const {
    auto value = zero_allowed ? map.integer(key) : map.positive(key);
    if (value && *value < 0) {
      map.error(key, Errc::out_of_range, "must be at least 0, is " + std::to_string(*value));
      value.reset();
    }
    if (value) spec.*member = value;
  }
  void operator()(FlagMember member) const {
    if (const auto value = map.boolean(key)) spec.*member = value;
  }
  void operator()(RealMember member) const {
    if (const auto value = map.real(key)) spec.*member = value;
  }
  void operator()(IntegersMember member) const {
    if (auto value = map.integers(key)) spec.*member = *std::move(value);
  }
  void operator()(TextsMember member) const {
    if (auto value = map.strings(key)) spec.*member = *std::move(value);
  }
};

}  // namespace

const std::vector<std::string>& model_field_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Field& field : kFields) out.emplace_back(field.name);
    return out;
  }();
  return names;
}

bool read_model_field(MapReader& map, std::string_view key, std::string_view field, ModelSpec& spec) {
  const Field* const found = find_field(field);
  if (found == nullptr) return false;
  std::visit(Reader{map, key, spec, found->zero_allowed}, found->member);
  return true;
}

bool model_field_stated(const ModelSpec& spec, std::string_view field) {
  const Field* const found = find_field(field);
  return found != nullptr && std::visit([&spec](auto member) { return stated(spec.*member); }, found->member);
}

void merge_model_fields(ModelSpec& spec, const ModelSpec& other, Precedence precedence) {
  for (const Field& field : kFields)
    std::visit(
        [&](auto member) {
          if (stated(other.*member) && (precedence == Precedence::replace || !stated(spec.*member))) spec.*member = other.*member;
        },
        field.member);
}

namespace {

/// Indices and counts of layers that reach beyond the model's.
std::vector<Diagnostic> beyond_layers(const ModelSpec& spec) {
  std::vector<Diagnostic> out;
  const std::int64_t layers = spec.num_hidden_layers.value_or(0);
  if (layers < 1) return out;
  const auto problem = [&](const char* field, const std::string& message) {
    out.push_back(make_diagnostic(Errc::conflict, {{}, 0, 0, field}, message + ", the model has " + std::to_string(layers) + " layers"));
  };
  if (spec.first_k_dense_replace.value_or(0) > layers) problem("first_k_dense_replace", std::to_string(*spec.first_k_dense_replace) + " leading dense layers");
  for (const auto& [field, list] : {std::pair{"mlp_only_layers", &spec.mlp_only_layers}, std::pair{"moe_layers", &spec.moe_layers}})
    for (const std::int64_t index : *list)
      if (index < 0 || index >= layers) problem(field, "there is no layer " + std::to_string(index));
  return out;
}

}  // namespace

std::vector<Diagnostic> model_problems(const ModelSpec& spec, const ConfigNode& root, const FieldPlaces& places) {
  const auto resolved = resolve_model(spec);
  std::vector<Diagnostic> out = resolved ? std::vector<Diagnostic>{} : resolved.error().diagnostics;
  for (auto& problem : beyond_layers(spec)) {
    const auto same = [&problem](const Diagnostic& other) { return other.where.path == problem.where.path; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(problem));
  }
  for (Diagnostic& problem : out) {
    const auto place = places.find(problem.where.path);
    if (place != places.end()) {
      problem.where = place->second;
      continue;
    }
    const std::string field = problem.where.path;
    problem.where = root.where;
    if (!field.empty()) problem.where.path = root.where.path.empty() ? field : root.where.path + "." + field;
  }
  return out;
}

}  // namespace nd::formats
