// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/model.hpp"

#include <algorithm>
#include <optional>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace nd::formats::megatron {

namespace {

constexpr std::int64_t kMostLayers = 1 << 16;

/// The expressions of --moe-layer-freq: lists of 0 and 1, '+' and '*' of them, parentheses.
class Pattern {
 public:
  explicit Pattern(const std::string& text) : text_(text) {}

  std::vector<std::int64_t> run() {
    auto out = sum();
    return out && at_ == text_.size() ? *out : std::vector<std::int64_t>{};
  }

 private:
  using List = std::optional<std::vector<std::int64_t>>;
  [[nodiscard]] char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  List sum() {
    constexpr int kDeepest = 50;
    if (++depth_ > kDeepest) return std::nullopt;
    List out = product();
    while (out && peek() == '+') {
      ++at_;
      const List more = product();
      if (!more || out->size() + more->size() > kMost) return std::nullopt;
      out->insert(out->end(), more->begin(), more->end());
    }
    --depth_;
    return out;
  }

  List product() {
    List out = term();
    while (out && peek() == '*') {
      ++at_;
      const auto times = number();
      if (!times || *times < 0 || *times > kMostLayers || out->size() * static_cast<std::size_t>(*times) > kMost) return std::nullopt;
      const std::vector<std::int64_t> once = *out;
      out->clear();
      for (std::int64_t i = 0; i < *times; ++i) out->insert(out->end(), once.begin(), once.end());
    }
    return out;
  }

  List term() {
    const char open = peek();
    if (open == '(') {
      ++at_;
      List out = sum();
      if (peek() != ')') return std::nullopt;
      ++at_;
      return out;
    }
    if (open != '[') return std::nullopt;
    ++at_;
    std::vector<std::int64_t> out;
    while (peek() != ']') {
      const auto value = number();
      if (!value || out.size() >= kMost) return std::nullopt;
      out.push_back(*value);
      if (peek() == ',') ++at_;
      else if (peek() != ']') return std::nullopt;
    }
    ++at_;
    return out;
  }

  std::optional<std::int64_t> number() {
    (void)peek();
    std::size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const auto out = core::parse_integer(std::string_view(text_).substr(at_, end - at_));
    at_ = end;
    return out;
  }

  static constexpr std::size_t kMost = static_cast<std::size_t>(kMostLayers);
  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class ModelReader {
 public:
  explicit ModelReader(Fields& fields) : f_(fields) {}

  Model read() {
    refuse_other_models();
    shape();
    layers();
    attention();
    feed_forward();
    latent_attention();
    experts();
    vocabulary();
    norms_and_biases();
    windows();
    hybrid();
    prediction_blocks();
    return std::move(out_);
  }

 private:
  /// Copies what was read into a field of the model.
  template <class T>
  void set(const char* field, std::optional<T> ModelSpec::*member, const std::optional<T>& value, Names names) {
    if (!value) return;
    out_.spec.*member = *value;
    out_.places[field] = f_.where(names);
  }
  [[nodiscard]] std::int64_t hidden() const { return out_.spec.hidden_size.value_or(0); }

  void refuse_other_models() {
    for (const char* const name : {"heterogeneous_layers_config_path", "hybrid_override_pattern", "hybrid_layer_pattern", "is_hybrid_model", "retro_project_dir",
                                   "encoder_num_layers", "decoder_num_layers"}) {
      const auto word = f_.word({name});
      if (!word || word->empty() || *word == "None" || core::canonical_name(*word) == "false") continue;
      if (std::string_view(name) == "encoder_num_layers" && f_.word({"num_layers"}) == word) continue;  // a dump repeats --num-layers
      f_.error({name}, Errc::unsupported, "models of this kind are not priced");
    }
  }

  void required(Names names) {
    if (!f_.has(names)) f_.error(names, Errc::missing_field, "is required");
  }

  void shape() {
    const Names layers{"num_layers"}, heads{"num_attention_heads"}, width{"hidden_size"};
    required(layers);
    required(width);
    required(heads);
    set("hidden_size", &ModelSpec::hidden_size, f_.positive(width), width);
    set("num_attention_heads", &ModelSpec::num_attention_heads, f_.positive(heads), heads);
    const Names positions{"max_position_embeddings", "seq_length"};
    set("max_position_embeddings", &ModelSpec::max_position_embeddings, f_.positive(positions), positions);
  }

  void layers() {
    auto slots = f_.positive({"num_layers"});
    if (slots && *slots > kMostLayers) {
      f_.error({"num_layers"}, Errc::out_of_range, "is too large: " + std::to_string(*slots));
      slots.reset();
    }
    const auto empty = f_.integers({"noop_layers"});
    if (!slots) return;
    out_.slots = *slots;
    for (const auto place : empty.value_or(std::vector<std::int64_t>{})) {
      if (place < 0 || place >= *slots) f_.error({"noop_layers"}, Errc::out_of_range, "layer " + std::to_string(place) + " of " + std::to_string(*slots));
      else out_.empty.push_back(place);
    }
    std::sort(out_.empty.begin(), out_.empty.end());
    out_.empty.erase(std::unique(out_.empty.begin(), out_.empty.end()), out_.empty.end());
    set("num_hidden_layers", &ModelSpec::num_hidden_layers, std::optional<std::int64_t>(*slots - static_cast<std::int64_t>(out_.empty.size())),
        {"num_layers"});
  }

  [[nodiscard]] bool real(std::int64_t slot) const { return !std::binary_search(out_.empty.begin(), out_.empty.end(), slot); }

  void attention() {
    const Names groups{"num_query_groups"};
    const auto stated = f_.positive(groups);
    const bool grouped = f_.on({"group_query_attention"});
    if (stated && !grouped && *stated > 1 && stated != out_.spec.num_attention_heads)
      f_.warn(groups, Errc::conflict, "has no effect without --group-query-attention: every head has its own keys and values");
    if (grouped) set("num_key_value_heads", &ModelSpec::num_key_value_heads, std::optional<std::int64_t>(stated.value_or(1)), groups);
    else out_.spec.num_key_value_heads = out_.spec.num_attention_heads;
    set("head_dim", &ModelSpec::head_dim, f_.positive({"kv_channels"}), {"kv_channels"});
    if (f_.on({"qk_layernorm"})) out_.spec.qk_norm = true;
    if (f_.on({"attention_output_gate"})) out_.spec.attention_output_gate = true;
    if (const auto type = f_.word({"softmax_type"}); type && *type == "learnable") out_.spec.attention_sinks = true;
  }

  void feed_forward() {
    const bool gated = f_.on({"swiglu"}) || f_.on({"geglu"}) || f_.on({"gated_linear_unit"});
    out_.spec.gated_ffn = gated;
    const Names width{"ffn_hidden_size"};
    auto value = f_.positive(width);
    if (!f_.has(width) && hidden() > 0) value = derived_ffn(hidden(), gated);
    set("intermediate_size", &ModelSpec::intermediate_size, value, width);
  }

  void latent_attention() {
    if (!f_.on({"multi_latent_attention", "multi_head_latent_attention"})) {
      f_.known({"q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_nope_head_dim", "qk_pos_emb_head_dim", "qk_rope_head_dim", "v_head_dim"});
      return;
    }
    // Megatron-core's MLATransformerConfig: no query compression unless stated, 512 or 32 by version; arguments say 32.
    const auto or_default = [this](Names names, std::int64_t fallback) -> std::optional<std::int64_t> {
      const auto value = f_.positive(names);
      if (!value && !f_.has(names)) f_.warn(names, Errc::missing_field, "is not stated; the trainer's default " + std::to_string(fallback) + " is assumed");
      return value || f_.has(names) ? value : std::optional<std::int64_t>(fallback);
    };
    auto& spec = out_.spec;
    spec.q_lora_rank = f_.has({"q_lora_rank"}) ? f_.integer({"q_lora_rank"}) : std::optional<std::int64_t>(0);
    if (spec.q_lora_rank && *spec.q_lora_rank < 0) f_.error({"q_lora_rank"}, Errc::out_of_range, "must be at least 0");
    set("kv_lora_rank", &ModelSpec::kv_lora_rank, or_default({"kv_lora_rank"}, 32), {"kv_lora_rank"});
    set("qk_nope_head_dim", &ModelSpec::qk_nope_head_dim, or_default({"qk_head_dim", "qk_nope_head_dim"}, 128), {"qk_head_dim", "qk_nope_head_dim"});
    set("qk_rope_head_dim", &ModelSpec::qk_rope_head_dim, or_default({"qk_pos_emb_head_dim", "qk_rope_head_dim"}, 64), {"qk_pos_emb_head_dim", "qk_rope_head_dim"});
    set("v_head_dim", &ModelSpec::v_head_dim, or_default({"v_head_dim"}, 128), {"v_head_dim"});
    spec.qk_norm.reset();  // the norms of the latents belong to latent attention itself
    spec.num_key_value_heads = spec.num_attention_heads;
    spec.head_dim.reset();  // the parts say it
  }

  void experts() {
    const Names count{"num_experts", "num_moe_experts"};
    const auto experts = f_.integer(count);
    const auto per_token = f_.positive({"moe_router_topk"});
    const Names width{"moe_ffn_hidden_size", "moe_intermediate_size"};
    const auto expert_width = f_.positive(width);
    const Names shared{"moe_shared_expert_intermediate_size"};
    const auto shared_width = f_.integer(shared);
    const auto shared_count = f_.integer({"n_shared_experts", "num_shared_experts"});
    const auto first_dense = f_.integer({"first_k_dense_replace"});
    const auto frequency = f_.word({"moe_layer_freq"});
    const bool gate = f_.on({"moe_shared_expert_gate", "shared_expert_gate"});
    const bool balance = f_.on({"moe_router_enable_expert_bias"});
    if (!experts || *experts <= 1) {
      if (experts && *experts < 0) f_.error(count, Errc::out_of_range, "must be at least 0");
      return;
    }
    auto& spec = out_.spec;
    set("num_experts", &ModelSpec::num_experts, experts, count);
    spec.num_experts_per_tok = per_token.value_or(2);
    if (!f_.has({"moe_router_topk"})) f_.warn({"moe_router_topk"}, Errc::missing_field, "is not stated; the trainer's default 2 is assumed");
    if (!f_.has(width) && spec.intermediate_size) {
      f_.warn(width, Errc::missing_field, "is not stated; the experts are as wide as --ffn-hidden-size, " + std::to_string(*spec.intermediate_size));
      spec.moe_intermediate_size = spec.intermediate_size;
    }
    set("moe_intermediate_size", &ModelSpec::moe_intermediate_size, expert_width, width);
    if (shared_width && *shared_width > 0) {
      // The width of all shared experts together: as one expert of that width.
      spec.num_shared_experts = 1;
      set("shared_expert_intermediate_size", &ModelSpec::shared_expert_intermediate_size, shared_width, shared);
    } else if (shared_count && *shared_count > 0) {
      spec.num_shared_experts = *shared_count;
      spec.shared_expert_intermediate_size = spec.moe_intermediate_size;
    }
    if (gate) spec.shared_expert_gate = true;
    spec.router_bias = balance;
    which_layers(first_dense, frequency);
  }

  /// Slot i has experts: Megatron i mod N = 0 or pattern[i]; MindSpeed besides i >= first_k_dense_replace.
  void which_layers(const std::optional<std::int64_t>& first_dense, const std::optional<std::string>& frequency) {
    const std::int64_t dense = std::max<std::int64_t>(0, first_dense.value_or(0));
    std::vector<std::int64_t> pattern;
    std::int64_t every = 1;
    if (frequency) {
      if (frequency->find('[') != std::string::npos) {
        pattern = pattern_list(*frequency);
        if (static_cast<std::int64_t>(pattern.size()) != out_.slots && out_.slots > 0)
          return f_.error({"moe_layer_freq"}, Errc::conflict,
                          pattern.empty() ? "is no list of 0 and 1" : "says it for " + std::to_string(pattern.size()) + " layers of " + std::to_string(out_.slots));
      } else if (const auto number = f_.integer({"moe_layer_freq"})) {
        every = *number < 1 ? 1 : *number;
      }
    }
    if (pattern.empty() && every == 1) {
      if (dense > 0) set("first_k_dense_replace", &ModelSpec::first_k_dense_replace, std::optional<std::int64_t>(dense), {"first_k_dense_replace"});
      return;
    }
    std::int64_t index = 0, leading = 0;
    bool only_leading = true;
    for (std::int64_t slot = 0; slot < out_.slots; ++slot) {
      if (!real(slot)) continue;
      const bool sparse = (pattern.empty() ? slot % every == 0 : pattern[static_cast<std::size_t>(slot)] != 0) && slot >= dense;
      if (sparse) out_.spec.moe_layers.push_back(index);
      else if (leading == index) ++leading;
      else only_leading = false;
      ++index;
    }
    if (out_.spec.moe_layers.empty()) return f_.error({"moe_layer_freq"}, Errc::conflict, "leaves no layer with experts");
    if (!only_leading) return;
    out_.spec.moe_layers.clear();
    if (leading > 0) set("first_k_dense_replace", &ModelSpec::first_k_dense_replace, std::optional<std::int64_t>(leading), {"moe_layer_freq"});
  }

  void vocabulary() {
    const Names padded{"padded_vocab_size"}, plain{"vocab_size"};
    const auto table = f_.positive(padded), stated = f_.positive(plain);
    const auto step = f_.positive({"make_vocab_size_divisible_by"});
    const auto tp = f_.positive({"tensor_model_parallel_size"}).value_or(1);
    if (table || f_.has(padded)) {
      set("vocab_size", &ModelSpec::vocab_size, table, padded);
      out_.padded_vocabulary = true;
    } else if (stated) {
      constexpr std::int64_t kUsualStep = 128;
      std::int64_t size = *stated;
      if (step.value_or(kUsualStep) != kUsualStep) {
        out_.padded_vocabulary = true;
        const auto multiple = core::multiply(*step, tp);
        if (multiple && *multiple < (std::int64_t{1} << 30)) size = (size + *multiple - 1) / *multiple * *multiple;
      }
      set("vocab_size", &ModelSpec::vocab_size, std::optional<std::int64_t>(size), plain);
    } else if (gpt2_tokenizer()) {
      constexpr std::int64_t kGpt2 = 50257;  // entries of the published GPT-2 vocabulary file
      out_.spec.vocab_size = kGpt2;
      f_.note({"tokenizer_type"}, "the vocabulary of GPT-2, 50257 entries");
    } else if (!f_.has(plain)) {
      f_.error(plain, Errc::missing_field, "the tokenizer decides the size of the vocabulary, which is not read",
               "add --vocab-size N, or --padded-vocab-size N");
    }
    out_.spec.tie_word_embeddings = !f_.on({"untie_embeddings_and_output_weights"});
  }

  [[nodiscard]] bool gpt2_tokenizer() {
    const auto type = f_.word({"tokenizer_type"});
    if (type && core::canonical_name(*type) != "gpt2bpetokenizer") return false;
    const auto* const file = f_.find({"vocab_file"});
    return type || (file != nullptr && core::contains_ignoring_case(file->text, "gpt2"));
  }

  void norms_and_biases() {
    auto& spec = out_.spec;
    const auto norm = f_.word({"normalization"});
    if (norm && core::canonical_name(*norm) != "rmsnorm" && core::canonical_name(*norm) != "layernorm")
      f_.error({"normalization"}, Errc::out_of_range, "'" + *norm + "' is no norm", "LayerNorm or RMSNorm");
    spec.norm_bias = !norm || core::canonical_name(*norm) != "rmsnorm";
    const bool bias = !f_.on({"disable_bias_linear"}) && f_.flag({"add_bias_linear"}).value_or(true);
    spec.attention_bias = bias || f_.on({"add_qkv_bias"});
    spec.attention_output_bias = bias || f_.on({"add_dense_bias"});
    spec.ffn_bias = bias;
    if (spec.num_experts) spec.expert_bias = bias;
    const auto position = f_.word({"position_embedding_type"});
    const bool rotary = f_.on({"use_rotary_position_embeddings"}) || (position && *position != "learned_absolute");
    const bool none = f_.on({"no_position_embedding"}) || !f_.flag({"add_position_embedding"}).value_or(true);
    // The trainer's default is a learned table, which models with RMSNorm do not have.
    const bool assumed = !rotary && !none && !position && !spec.norm_bias.value_or(true);
    if (assumed) f_.note({"position_embedding_type"}, "is not stated; rotary positions are assumed beside RMSNorm");
    spec.learned_positions = !rotary && !none && !assumed;
    if (f_.on({"embed_layernorm", "embedding_layernorm"})) spec.embedding_norm = true;
    if (f_.on({"post_norm", "sandwich_norm"})) spec.norms_per_layer = 4;
    else spec.norms_per_layer = 2;
    // The trainer's default is a tenth, and its masks cost memory: what is not stated is priced.
    const double trainer_dropout = 0.1;
    const auto dropout = [this, trainer_dropout](Names names) {
      const auto value = f_.real(names);
      if (value && !(*value >= 0 && *value < 1)) f_.error(names, Errc::out_of_range, "must be from 0 to below 1");
      return value.value_or(trainer_dropout);
    };
    spec.hidden_dropout = dropout({"hidden_dropout"});
    spec.attention_dropout = dropout({"attention_dropout"});
    if (!f_.has({"hidden_dropout"}) || !f_.has({"attention_dropout"}))
      f_.note({"hidden_dropout"}, "dropout that is not stated is 0.1, the trainer's default");
  }

  void windows() {
    const auto window = f_.integers({"window_size"});
    const auto every = f_.word({"window_attn_skip_freq"});
    if (!window || window->empty() || window->front() < 0) return;
    if (window->front() < (std::int64_t{1} << 30))
      set("sliding_window", &ModelSpec::sliding_window, std::optional<std::int64_t>(window->front() + 1), {"window_size"});
    if (every && every->find('[') == std::string::npos) {
      set("sliding_window_pattern", &ModelSpec::sliding_window_pattern, f_.positive({"window_attn_skip_freq"}), {"window_attn_skip_freq"});
      return;
    }
    if (!every) return;
    const auto pattern = pattern_list(*every);
    if (static_cast<std::int64_t>(pattern.size()) != out_.slots)
      return f_.error({"window_attn_skip_freq"}, Errc::conflict, "says it for " + std::to_string(pattern.size()) + " layers of " + std::to_string(out_.slots));
    for (std::int64_t slot = 0; slot < out_.slots; ++slot)
      if (real(slot)) out_.spec.layer_types.emplace_back(pattern[static_cast<std::size_t>(slot)] != 0 ? "sliding_attention" : "full_attention");
  }

  void hybrid() {
    auto& spec = out_.spec;
    const Names interval{"full_attention_interval"}, frequency{"linear_attention_freq"};
    set("full_attention_interval", &ModelSpec::full_attention_interval, f_.positive(interval), interval);
    if (const auto text = f_.word(frequency)) {
      if (text->find('[') == std::string::npos) {
        set("full_attention_interval", &ModelSpec::full_attention_interval, f_.positive(frequency), frequency);
      } else {
        const auto pattern = pattern_list(*text);
        if (static_cast<std::int64_t>(pattern.size()) != out_.slots)
          return f_.error(frequency, Errc::conflict, "says it for " + std::to_string(pattern.size()) + " layers of " + std::to_string(out_.slots));
        for (std::int64_t slot = 0; slot < out_.slots; ++slot)
          if (real(slot)) spec.layer_types.emplace_back(pattern[static_cast<std::size_t>(slot)] != 0 ? "linear_attention" : "full_attention");
      }
    }
    if (!spec.full_attention_interval && spec.layer_types.empty()) return;
    set("linear_num_key_heads", &ModelSpec::linear_num_key_heads, f_.positive({"linear_num_key_heads"}), {"linear_num_key_heads"});
    set("linear_num_value_heads", &ModelSpec::linear_num_value_heads, f_.positive({"linear_num_value_heads"}), {"linear_num_value_heads"});
    set("linear_key_head_dim", &ModelSpec::linear_key_head_dim, f_.positive({"linear_key_head_dim"}), {"linear_key_head_dim"});
    set("linear_value_head_dim", &ModelSpec::linear_value_head_dim, f_.positive({"linear_value_head_dim"}), {"linear_value_head_dim"});
    set("linear_conv_kernel_dim", &ModelSpec::linear_conv_kernel_dim, f_.positive({"linear_conv_kernel_dim"}), {"linear_conv_kernel_dim"});
  }

  void prediction_blocks() {
    const Names names{"mtp_num_layers", "num_nextn_predict_layers"};
    const auto depth = f_.integer(names);
    if (depth && (*depth < 0 || *depth > kMostLayers)) return f_.error(names, Errc::out_of_range, "must be from 0 on, is " + std::to_string(*depth));
    if (depth && *depth > 0) set("mtp_depth", &ModelSpec::mtp_depth, depth, names);
  }

  Fields& f_;
  Model out_;
};

}  // namespace

std::vector<std::int64_t> pattern_list(const std::string& text) { return Pattern(text).run(); }

std::int64_t derived_ffn(std::int64_t hidden, bool gated) {
  constexpr std::int64_t kMultiple = 64;
  return gated ? hidden * 8 / 3 / kMultiple * kMultiple : 4 * hidden;
}

Model read_model(Fields& fields) { return ModelReader(fields).read(); }

}  // namespace nd::formats::megatron
