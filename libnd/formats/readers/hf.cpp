// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/model_fields.hpp"
#include "formats/readers/hf_model.hpp"
#include "formats/readers/reader.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {
namespace {

/// Further spellings of a field that several families use. The field's own name comes first, then these in order.
struct Alias {
  std::string_view field, key;
};
constexpr std::array kAliases{
    Alias{"hidden_size", "n_embd"},
    Alias{"hidden_size", "d_model"},
    Alias{"num_hidden_layers", "n_layer"},
    Alias{"num_hidden_layers", "n_layers"},
    Alias{"num_attention_heads", "n_head"},
    Alias{"num_attention_heads", "n_heads"},
    Alias{"num_key_value_heads", "num_kv_heads"},
    Alias{"num_key_value_heads", "multi_query_group_num"},
    Alias{"head_dim", "attention_head_dim"},
    Alias{"intermediate_size", "n_inner"},
    Alias{"intermediate_size", "ffn_dim"},
    Alias{"intermediate_size", "ffn_hidden_size"},
    Alias{"max_position_embeddings", "n_positions"},
    Alias{"max_position_embeddings", "seq_length"},
    Alias{"num_experts", "n_routed_experts"},
    Alias{"num_experts", "num_local_experts"},
    Alias{"num_experts", "moe_num_experts"},
    Alias{"num_experts_per_tok", "experts_per_token"},
    Alias{"num_experts_per_tok", "moe_topk"},
    Alias{"num_experts_per_tok", "moe_k"},
    Alias{"num_shared_experts", "n_shared_experts"},
    Alias{"num_shared_experts", "moe_num_shared_experts"},
    Alias{"shared_expert_intermediate_size", "shared_intermediate_size"},
    Alias{"mtp_depth", "num_nextn_predict_layers"},
    Alias{"mtp_depth", "mtp_num_hidden_layers"},
    Alias{"attention_output_gate", "attn_output_gate"},
    Alias{"qk_norm", "use_qk_norm"},
    Alias{"qk_norm", "qk_layernorm"},
    Alias{"sliding_window_pattern", "_sliding_window_pattern"},
    Alias{"hidden_dropout", "resid_pdrop"},
    Alias{"attention_dropout", "attn_pdrop"},
};

/// The mapping that holds `path`'s last key, so that a field inside a section is read with its own position.
struct Place {
  const ConfigNode* section = nullptr;
  std::string_view key;
};

Place find_place(const ConfigNode& text, std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const ConfigNode* const section = dot == std::string_view::npos ? &text : find_path(text, path.substr(0, dot));
  const std::string_view key = dot == std::string_view::npos ? path : path.substr(dot + 1);
  if (section == nullptr) return {};
  const ConfigNode* const value = section->find(key);
  return value == nullptr || value->is_null() ? Place{} : Place{section, key};
}

/// Reads the text model of one config. Thread-compatible; lives for one document.
class HfModelReader {
 public:
  HfModelReader(const ConfigNode& root, const Family& family, std::vector<Diagnostic>& sink)
      : root_(root), text_(hf_text_config(root)), family_(family), map_(text_, sink), sink_(sink) {}

  ModelSpec read() {
    for (const std::string& field : model_field_names()) read_field(field);
    if (!spec_.tie_word_embeddings && &text_ != &root_) read_from(root_, "tie_word_embeddings", "tie_word_embeddings");
    apply_rules();
    derive_width();
    derive_windows();
    derive_moe_layers();
    check_words();
    check_groups();
    refuse_near_misses();
    return std::move(spec_);
  }
  [[nodiscard]] FieldPlaces take_places() { return std::move(places_); }

 private:
  void read_from(const ConfigNode& section, std::string_view key, std::string_view field) {
    MapReader map(section, sink_);
    read_model_field(map, key, field, spec_);
    places_.emplace(std::string(field), map.where(key));
  }

  /// First populated of the family's keys, the field's own name, the common spellings.
  void read_field(std::string_view field) {
    if (field == "moe_layer_freq" || field == "moe_layers") return;  // three conventions, see derive_moe_layers()
    const auto try_key = [&](std::string_view path) {
      const Place place = find_place(text_, path);
      if (place.section == nullptr) return false;
      read_from(*place.section, place.key, field);
      return true;
    };
    if (const auto own = family_.read.find(std::string(field)); own != family_.read.end())
      if (std::any_of(own->second.begin(), own->second.end(), try_key)) return;
    if (try_key(field)) return;
    for (const Alias& alias : kAliases)
      if (alias.field == field && try_key(alias.key)) return;
  }

  [[nodiscard]] bool holds(const std::pair<std::string, std::string>& condition) const {
    const ConfigNode* const value = find_path(text_, condition.first);
    return value == nullptr ? condition.second == "false" : value->text == condition.second;
  }

  void apply_rules() {
    for (const Family::Rule& rule : family_.rules)
      if (std::all_of(rule.conditions.begin(), rule.conditions.end(), [this](const auto& condition) { return holds(condition); }))
        merge_model_fields(spec_, rule.facts, rule.override_stated ? Precedence::replace : Precedence::fill_open);
  }

  void derive_width() {
    if (spec_.intermediate_size) *spec_.intermediate_size /= family_.intermediate_divisor;
    if (spec_.intermediate_size || spec_.moe_intermediate_size || !spec_.hidden_size) return;
    const std::int64_t factor = map_.positive("expansion_ratio").value_or(family_.intermediate_factor);
    constexpr std::int64_t kAbsurd = 1024;  // keeps the product in range; resolve_model() judges the width itself
    if (factor > 0 && factor <= kAbsurd && *spec_.hidden_size <= (std::int64_t{1} << 40)) spec_.intermediate_size = factor * *spec_.hidden_size;
  }

  /// Layer indices below num_hidden_layers; 0 when that is unknown or absurd (resolve_model() reports it).
  [[nodiscard]] std::int64_t layers() const {
    constexpr std::int64_t kMostLayers = 1 << 16;
    const std::int64_t stated = spec_.num_hidden_layers.value_or(0);
    return stated <= kMostLayers ? stated : 0;
  }

  void derive_windows() {
    const bool has_switch = map_.has("use_sliding_window") || map_.has("max_window_layers");
    if (has_switch && !map_.boolean("use_sliding_window").value_or(false)) spec_.sliding_window.reset();
    if (!spec_.layer_types.empty() || !spec_.sliding_window) return;
    if (const auto from = map_.integer("max_window_layers"))
      for (std::int64_t i = 0; i < layers(); ++i) spec_.layer_types.emplace_back(i >= *from ? "sliding_attention" : "full_attention");
    // Llama 4: layers with rotary positions (1) attend in chunks.
    if (const auto rotary = map_.integers("no_rope_layers"); rotary && map_.has("attention_chunk_size"))
      for (const std::int64_t flag : *rotary) spec_.layer_types.emplace_back(flag == 1 ? "chunked_attention" : "full_attention");
  }

  /// "every n-th": DeepSeek counts i mod n = 0 (or lists a flag per layer), Qwen and Llama 4 count (i + 1) mod n = 0.
  void derive_moe_layers() {
    if (const auto listed = map_.integers("moe_layers")) {
      spec_.moe_layers = *listed;
      places_.emplace("moe_layers", map_.where("moe_layers"));
    }
    for (const std::string_view key : {"decoder_sparse_step", "interleave_moe_layer_step"})
      if (map_.has(key)) {
        spec_.moe_layer_freq = map_.positive(key);
        places_.emplace("moe_layer_freq", map_.where(key));
      }
    if (!spec_.moe_layers.empty()) return;
    if (const ConfigNode* const frequency = map_.child("moe_layer_freq")) read_frequency(*frequency);
    if (const auto types = map_.strings("mlp_layer_types")) {
      for (std::size_t i = 0; i < types->size() && static_cast<std::int64_t>(i) < layers(); ++i)
        if ((*types)[i] == "sparse") spec_.moe_layers.push_back(static_cast<std::int64_t>(i));
    }
  }

  void read_frequency(const ConfigNode& node) {
    if (node.is_sequence()) {
      const auto flags = map_.integers("moe_layer_freq").value_or(std::vector<std::int64_t>{});
      for (std::size_t i = 0; i < flags.size(); ++i)
        if (flags[i] != 0) spec_.moe_layers.push_back(static_cast<std::int64_t>(i));
      return;
    }
    const std::int64_t step = map_.positive("moe_layer_freq").value_or(1);
    if (step == 1) return;
    for (std::int64_t i = spec_.first_k_dense_replace.value_or(0); i < layers(); ++i)
      if (i % step == 0) spec_.moe_layers.push_back(i);
  }

  /// A type or an activation that no library has is a slip, whether it is priced or not.
  void check_words() {
    constexpr std::array<std::string_view, 12> kTypes{"auto", "float64", "float32", "float16", "bfloat16", "half", "float", "double", "float8_e4m3fn", "float8_e5m2", "bf16", "fp16"};
    // transformers.activations.ACT2FN and the names of older configurations.
    constexpr std::array<std::string_view, 30> kActivations{
        "silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python", "gelu_python_tanh", "gelu_accurate", "gelu_10", "quick_gelu", "relu", "relu2", "relu_squared", "relu6",
        "leaky_relu", "prelu", "mish", "tanh", "sigmoid", "linear", "laplace", "swiglu", "geglu", "reglu", "glu", "squared_relu", "xielu", "silu_and_mul", "gelu_tanh"};
    for (const ConfigNode* const section : {&text_, &root_}) {
      for (const std::string_view key : {"torch_dtype", "dtype"}) check_word(*section, key, kTypes, "torch.");
      if (section == &root_ && &root_ != &text_) break;
      for (const std::string_view key : {"hidden_act", "hidden_activation", "activation_function"}) check_word(*section, key, kActivations, {});
      if (&root_ == &text_) break;
    }
  }

  template <std::size_t N>
  void check_word(const ConfigNode& section, std::string_view key, const std::array<std::string_view, N>& known, std::string_view prefix) {
    const ConfigNode* const node = section.find(key);
    if (node == nullptr || node->is_null()) return;
    MapReader map(section, sink_);
    const auto text = map.string(key);
    if (!text) return;
    std::string word = core::canonical_name(*text);
    if (!prefix.empty() && word.starts_with(prefix)) word.erase(0, prefix.size());
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    sink_.push_back(make_diagnostic(Errc::out_of_range, node->where, "'" + text->substr(0, 60) + "' is no " + (prefix.empty() ? "activation" : "data type"),
                                    core::name_hint(word, {known.begin(), known.end()})));
  }

  /// Group-limited routing: groups of equal size, and no more chosen than there are.
  void check_groups() {
    const auto groups = map_.integer("n_group"), chosen = map_.integer("topk_group");
    const auto problem = [this](std::string_view key, std::string message) { map_.error(key, Errc::conflict, std::move(message)); };
    if (groups && *groups < 1) problem("n_group", "must be at least 1, is " + std::to_string(*groups));
    if (groups && *groups >= 1 && spec_.num_experts && *spec_.num_experts % *groups != 0)
      problem("n_group", std::to_string(*spec_.num_experts) + " experts are no multiple of " + std::to_string(*groups) + " groups");
    if (groups && chosen && (*chosen < 1 || *chosen > *groups))
      problem("topk_group", "must be from 1 to n_group " + std::to_string(*groups) + ", is " + std::to_string(*chosen));
  }

  /// Config files hold many keys nobody reads here, but one letter off a key that is read, and that is not stated, is a typo
  /// that would change the model silently.
  void refuse_near_misses() {
    std::set<std::string, std::less<>> read = map_.known();
    for (const std::string& field : model_field_names()) read.insert(field);
    for (const Alias& alias : kAliases) read.emplace(alias.key);
    for (const auto& [field, keys] : family_.read) read.insert(keys.begin(), keys.end());
    constexpr std::size_t kShort = 7;  // short keys are a letter apart by chance
    for (const auto& [key, value] : text_.members) {
      if (key.size() <= kShort || read.count(key) != 0) continue;
      for (const std::string& known : read)
        if (text_.find(known) == nullptr && core::edit_distance(key, known) == 1)
          sink_.push_back(make_diagnostic(Errc::unknown_key, value.where, "nothing reads this key", "did you mean '" + known + "'?"));
    }
  }

  const ConfigNode& root_;
  const ConfigNode& text_;
  const Family& family_;
  MapReader map_;
  std::vector<Diagnostic>& sink_;
  ModelSpec spec_;
  FieldPlaces places_;
};

void note(std::vector<Diagnostic>& notes, const ConfigNode& node, std::string message) {
  notes.push_back(make_diagnostic(Errc::unsupported, node.where, std::move(message)));
  notes.back().severity = Severity::note;
}

std::string name_of(const std::string& path) {
  const std::filesystem::path file(path);
  if (file.filename() == "config.json" && file.has_parent_path()) {
    const std::string folder = file.parent_path().filename().string();
    if (!folder.empty() && folder != "." && folder != "..") return folder;
  }
  return file.stem().string() == "config" ? std::string() : file.stem().string();
}

}  // namespace

const ConfigNode& hf_text_config(const ConfigNode& root) {
  for (const std::string_view path : {"text_config", "thinker_config.text_config", "llm_config", "language_config"})
    if (const ConfigNode* const section = find_path(root, path); section != nullptr && section->is_mapping()) return *section;
  return root;
}

std::string checkpoint_config_file(const std::string& stated, const std::string& path, const DataStore& data) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path base = fs::path(path).parent_path();
  for (const fs::path& place : {base / stated, fs::path(data.root()) / "models" / stated}) {
    if (fs::is_directory(place, failure)) {
      if (const fs::path file = place / "config.json"; fs::exists(file, failure)) return file.string();
    } else if (fs::exists(place, failure)) {
      return place.string();
    }
  }
  return (base / stated).string();
}

Result<HfModel> read_hf_model(const ConfigNode& root, const std::string& path, const DataStore& data) {
  std::vector<Diagnostic> sink;
  HfModel out;
  const ConfigNode& text = hf_text_config(root);
  std::string type;
  for (const ConfigNode* const section : {&text, &root}) {
    MapReader map(*section, sink);
    if (!sink.empty()) return Error(std::move(sink));  // no mapping
    if (type.empty()) type = map.string("model_type").value_or("");
  }
  const auto family = find_family(data.root() + "/arch", type);
  if (!family) return family.error();

  HfModelReader reader(root, *family, sink);
  ModelSpec spec = reader.read();
  out.places = reader.take_places();
  spec.model_type = std::move(type);
  spec.name = name_of(path);
  auto filled = data.with_family_defaults(std::move(spec), out.notes);
  if (!filled) return filled.error();
  out.spec = *std::move(filled);
  for (Diagnostic& one : out.notes)
    if (one.where.file.empty()) one.where.file = root.where.file;

  if (const ConfigNode* const quantised = find_path(text, "quantization_config"))
    note(out.notes, *quantised, "quantization_config describes the stored checkpoint and is not used for training");
  for (const std::string_view key : {"vision_config", "audio_config"})
    if (const ConfigNode* const tower = find_path(root, key)) {
      out.has_tower = true;
      note(out.notes, *tower, std::string(key) + ": only the text model is priced");
    }
  if (!sink.empty()) return Error(std::move(sink));
  return out;
}

Result<Request> read_hf(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions&) {
  auto model = read_hf_model(root, path, data);
  if (!model) return model.error();
  if (auto problems = model_problems(model->spec, hf_text_config(root), model->places); !problems.empty()) return Error(std::move(problems));
  Request out;
  out.model = std::move(model->spec);
  out.notes = std::move(model->notes);
  return out;
}

}  // namespace nd::formats
