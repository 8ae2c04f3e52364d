// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/mindformers_model.hpp"

#include <array>
#include <cmath>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats::mindformers {

namespace {

/// A field of ModelSpec and its spellings in model_config (MindFormers' own map of aliases, docs/formats/mindformers.md).
struct Row {
  std::string_view field;
  Names keys;
};

const std::array<Row, 22>& model_rows() {
  static const std::array<Row, 22> kRows{{
      {"num_hidden_layers", {"num_layers", "num_hidden_layers"}},
      {"hidden_size", {"hidden_size"}},
      {"num_attention_heads", {"num_heads", "num_attention_heads"}},
      {"num_key_value_heads", {"n_kv_heads", "num_key_value_heads", "num_query_groups"}},
      {"head_dim", {"head_dim", "kv_channels"}},
      {"vocab_size", {"vocab_size"}},
      {"intermediate_size", {"intermediate_size", "ffn_hidden_size"}},
      {"max_position_embeddings", {"max_position_embeddings", "max_position_embedding"}},
      {"tie_word_embeddings", {"tie_word_embeddings"}},
      {"attention_bias", {"qkv_has_bias", "attention_bias", "add_qkv_bias"}},
      {"attention_output_bias", {"attn_proj_has_bias"}},
      {"gated_ffn", {"gated_linear_unit"}},
      {"hidden_dropout", {"hidden_dropout", "hidden_dropout_rate"}},
      {"attention_dropout", {"attention_dropout", "attention_dropout_rate"}},
      {"kv_lora_rank", {"kv_lora_rank"}},
      {"q_lora_rank", {"q_lora_rank"}},
      {"qk_rope_head_dim", {"qk_rope_head_dim", "qk_pos_emb_head_dim"}},
      {"qk_nope_head_dim", {"qk_nope_head_dim", "qk_head_dim"}},
      {"v_head_dim", {"v_head_dim"}},
      {"sliding_window", {"sliding_window"}},
      {"layer_types", {"layer_types"}},
      {"full_attention_interval", {"full_attention_interval"}},
  }};
  return kRows;
}

/// Expert fields stand in moe_config or, without it, in model_config.
const std::array<Row, 6>& expert_rows() {
  static const std::array<Row, 6> kRows{{
      {"num_experts_per_tok", {"num_experts_chosen", "num_experts_per_tok", "moe_router_topk"}},
      {"moe_intermediate_size", {"moe_intermediate_size", "moe_ffn_hidden_size"}},
      {"num_shared_experts", {"shared_expert_num", "n_shared_experts"}},
      {"first_k_dense_replace", {"first_k_dense_replace"}},
      {"router_bias", {"balance_via_topk_bias", "moe_router_enable_expert_bias"}},
      {"shared_expert_gate", {"use_shared_expert_gating", "shared_expert_gate"}},
  }};
  return kRows;
}
const Names kExpertCount{"expert_num", "n_routed_experts", "num_experts", "num_moe_experts"};

class ModelReader {
 public:
  ModelReader(const ModelSections& sections, const DataStore& data, Findings& findings)
      : trainer_(sections.trainer), model_(sections.model), experts_(sections.experts), data_(data), findings_(findings) {
    if (sections.base == nullptr) return;
    out_.spec = sections.base->spec;
    out_.places = sections.base->places;
  }

  Model read() {
    for (const auto& row : model_rows()) read_from(model_, row.field, model_.key(row.keys));
    names();
    embeddings_and_biases();
    query_key_norm();
    experts();
    mtp();
    if (model_.map().boolean("is_encoder_decoder").value_or(false))
      model_.map().error("is_encoder_decoder", Errc::unsupported, "encoder-decoder models cannot be priced");
    family();
    width();
    // An expert without a width of its own is as wide as a dense layer.
    if (out_.spec.num_experts && !out_.spec.moe_intermediate_size) out_.spec.moe_intermediate_size = out_.spec.intermediate_size;
    return std::move(out_);
  }

 private:
  bool read_from(Section& section, std::string_view field, std::string_view key) {
    if (!section.map().has(key)) return false;
    read_model_field(section.map(), key, field, out_.spec);
    out_.places.insert_or_assign(std::string(field), section.where(key));
    return true;
  }

  /// moe_config first; a model_config that says otherwise is a conflict.
  Section& expert_section(Names keys) {
    const auto outer = experts_.key(keys), inner = model_.key(keys);
    if (!experts_.map().has(outer)) return model_;
    if (model_.map().has(inner) && experts_.map().child(outer)->text != model_.map().child(inner)->text)
      model_.map().error(inner, Errc::conflict, "differs from moe_config." + std::string(outer), "keep one of the two");
    return experts_;
  }

  void names() {
    if (const auto name = trainer_.map().string("model_name"); name && !name->empty()) out_.spec.name = *name;
    if (out_.spec.name.empty()) out_.spec.name = "custom";
    if (const auto type = model_.map().string("model_type")) {
      out_.spec.model_type = *type;
      return;
    }
    if (!out_.spec.model_type.empty()) return;  // the checkpoint's
    out_.spec.model_type = family_of_name(out_.spec.name);
    if (out_.spec.model_type.empty()) out_.spec.model_type = family_of_name(model_.map().string("type").value_or(""));
    if (out_.spec.model_type.empty()) {
      out_.spec.model_type = out_.spec.name;  // it may be the name of a family; if not, the defaults say so
    }
  }

  void embeddings_and_biases() {
    auto& spec = out_.spec;
    const auto untied = model_.map().boolean("untie_embeddings_and_output_weights");
    if (untied && spec.tie_word_embeddings && *untied == *spec.tie_word_embeddings)
      model_.map().error("untie_embeddings_and_output_weights", Errc::conflict, "contradicts tie_word_embeddings", "keep one of the two");
    if (untied && !spec.tie_word_embeddings) spec.tie_word_embeddings = !*untied;
    if (const auto all = model_.map().boolean("add_bias_linear")) {
      // Every linear layer; q, k and v can have theirs switched on alone.
      if (!spec.attention_output_bias) spec.attention_output_bias = all;
      spec.ffn_bias = all;
      if (*all && !spec.attention_bias) spec.attention_bias = true;
    }
    const auto activation = model_.map().string("hidden_act");
    if (activation && core::contains_ignoring_case(*activation, "swiglu") && !spec.gated_ffn) spec.gated_ffn = true;
  }

  void query_key_norm() {
    const auto key = model_.key({"qk_layernorm", "use_qk_norm", "qk_norm"});
    // With latent attention the switch means the norms of the latents, which every latent layer has.
    if (out_.spec.kv_lora_rank.value_or(0) > 0) return (void)model_.map().boolean(key);
    read_from(model_, "qk_norm", key);
  }

  void experts() {
    Section& count_section = expert_section(kExpertCount);
    const auto key = count_section.key(kExpertCount);
    const auto count = count_section.map().has(key) ? count_section.map().integer(key) : std::nullopt;
    if (count && *count < 0) count_section.map().error(key, Errc::out_of_range, "must not be negative, is " + std::to_string(*count));
    for (const auto& row : expert_rows()) {
      Section& section = expert_section(row.keys);
      // A dense model may carry the expert section of its template: one expert is none.
      if (count.value_or(0) > 1) read_from(section, row.field, section.key(row.keys));
    }
    const auto shared = model_.key({"moe_shared_expert_intermediate_size"});
    const auto frequency = model_.key({"moe_layer_freq"});
    if (count.value_or(0) <= 1) return;
    auto& spec = out_.spec;
    spec.num_experts = count;
    out_.places.emplace("num_experts", count_section.where(key));
    if (!spec.num_experts_per_tok) spec.num_experts_per_tok = 1;
    if (const auto total = model_.map().has(shared) ? model_.map().positive(shared) : std::nullopt) {
      const std::int64_t number = std::max<std::int64_t>(1, spec.num_shared_experts.value_or(1));
      if (*total % number != 0)
        model_.map().error(shared, Errc::out_of_range, "is no multiple of the " + std::to_string(number) + " shared experts");
      spec.num_shared_experts = number;
      spec.shared_expert_intermediate_size = *total / number;
    }
    if (const ConfigNode* const node = model_.map().child(frequency)) moe_layers(*node, frequency);
  }

  /// n: layer i has experts when i mod n = 0; a list: when entry i is 1. Layers before first_k_dense_replace stay dense.
  void moe_layers(const ConfigNode& node, std::string_view key) {
    auto& spec = out_.spec;
    constexpr std::int64_t kMostLayers = 1 << 16;
    const std::int64_t layers = spec.num_hidden_layers.value_or(0), first = spec.first_k_dense_replace.value_or(0);
    if (layers > kMostLayers) return;  // refused as a whole later
    out_.places.emplace("moe_layers", model_.where(key));
    if (node.is_sequence()) {
      if (static_cast<std::int64_t>(node.items.size()) != layers)
        return model_.map().error(key, Errc::conflict, "has " + std::to_string(node.items.size()) + " entries for " + std::to_string(layers) + " layers");
      for (std::int64_t i = first; i < layers; ++i)
        if (as_integer(node.items[static_cast<std::size_t>(i)]) == std::optional<std::int64_t>(1)) spec.moe_layers.push_back(i);
      return;
    }
    const auto step = model_.map().positive(key);
    if (!step || *step == 1) return;
    for (std::int64_t i = first; i < layers; ++i)
      if (i % *step == 0) spec.moe_layers.push_back(i);
  }

  void mtp() {
    const auto behind = model_.key({"num_nextn_predict_layers", "mtp_num_layers"});
    if (read_from(model_, "mtp_depth", "mtp_depth")) {
      out_.mtp_in_offset = true;
      if (model_.map().has(behind) && model_.map().integer(behind) != out_.spec.mtp_depth)
        model_.map().error(behind, Errc::conflict, "differs from 'mtp_depth', another spelling of the same setting", "keep one of the two");
      return;
    }
    (void)model_.map().child("mtp_depth");
    read_from(model_, "mtp_depth", behind);
  }

  void family() {
    std::vector<Diagnostic> notes;
    auto filled = data_.with_family_defaults(out_.spec, notes);
    if (!filled) {
      for (const auto& one : filled.error().diagnostics) findings_.problems.push_back(one);
      return;
    }
    out_.spec = *std::move(filled);
    for (auto& note : notes) {
      if (note.where.file.empty()) note.where = trainer_.map().has("model_name") ? trainer_.where("model_name") : model_.node().where;
      findings_.notes.push_back(std::move(note));
    }
  }

  void width() {
    auto& spec = out_.spec;
    const auto multiplier = model_.map().real("ffn_dim_multiplier");
    const auto multiple_of = model_.map().positive("multiple_of");
    constexpr std::int64_t kLargestHidden = 1 << 24, kDefaultMultiple = 256;  // MindFormers' LlamaConfig
    if (spec.intermediate_size || !spec.hidden_size || *spec.hidden_size > kLargestHidden) return;
    if (multiplier && !(*multiplier > 0 && *multiplier < 1000))
      return model_.map().error("ffn_dim_multiplier", Errc::out_of_range, "must be above 0 and below 1000");
    if (multiple_of.value_or(1) > kLargestHidden) return model_.map().error("multiple_of", Errc::out_of_range, "is larger than any width");
    const bool gated = spec.gated_ffn.value_or(true);
    spec.intermediate_size =
        gated ? derived_width(*spec.hidden_size, multiplier.value_or(0), multiple_of.value_or(kDefaultMultiple)) : 4 * *spec.hidden_size;
    if (!multiplier && !multiple_of)
      findings_.warn(Errc::missing_field, model_.where("intermediate_size"),
                     "no feed-forward width is stated; " + std::to_string(*spec.intermediate_size) + " is assumed from the hidden size");
  }

  Section& trainer_;
  Section& model_;
  Section& experts_;
  const DataStore& data_;
  Findings& findings_;
  Model out_;
};

}  // namespace

std::int64_t derived_width(std::int64_t hidden, double multiplier, std::int64_t multiple_of) {
  std::int64_t width = 4 * hidden;
  if (multiplier > 0) width = static_cast<std::int64_t>(std::floor((multiplier + 0.01) * static_cast<double>(width)));
  return core::round_up(2 * width / 3, multiple_of);
}

Model read_model(const ModelSections& sections, const DataStore& data, Findings& findings) { return ModelReader(sections, data, findings).read(); }

}  // namespace nd::formats::mindformers
