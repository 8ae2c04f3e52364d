// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "formats/family.hpp"
#include "formats/readers/reader.hpp"
#include "formats/tree/node.hpp"
#include "nd/ops.hpp"

using namespace nd;
using namespace nd::formats;

namespace {

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

Result<Request> read_text(const std::string& text) {
  return parse_json(text, "x/config.json").and_then([](const ConfigNode& root) { return read_hf(root, "somewhere/my-model/config.json", data()); });
}

ResolvedModel model_of(const std::string& text) {
  const auto request = read_text(text);
  if (!request) FAIL(to_text(request.error().diagnostics.front()));
  const auto model = resolve_model(request->model);
  REQUIRE(model);
  return *model;
}

std::int64_t total_of(const std::string& text) { return count_parameters(model_of(text)).total; }

std::vector<std::string> problems(const Result<Request>& result) {
  std::vector<std::string> out;
  if (result) return out;
  for (const Diagnostic& one : result.error().diagnostics)
    out.push_back(std::to_string(one.where.line) + ":" + std::to_string(one.where.column) + " " + one.where.path + " " + to_text(one.code));
  return out;
}
std::vector<std::string> invalid(const std::string& name) {
  const std::string path = ND_TEST_SOURCE_DIR "/tests/unit/formats/invalid/" + name;
  return problems(read_document(path).and_then([&](const ConfigNode& root) { return read_hf(root, path, data()); }));
}

bool has_note(const Request& request, std::string_view part) {
  return std::any_of(request.notes.begin(), request.notes.end(), [&](const Diagnostic& note) {
    return note.severity == Severity::note && note.message.find(part) != std::string::npos;
  });
}

int windowed(const ResolvedModel& model) {
  return static_cast<int>(std::count_if(model.layer_kind.begin(), model.layer_kind.end(), [&model](int kind) {
    return model.kinds[static_cast<std::size_t>(kind)].attention.window > 0;
  }));
}

}  // namespace

TEST_CASE("every preset is read and resolves", "[formats][hf]") {
  const auto names = data().model_names();
  REQUIRE(names);
  CHECK(names->size() >= 22);
  for (const std::string& name : *names) {
    CAPTURE(name);
    const auto spec = data().model(name);
    REQUIRE(spec);
    CHECK(spec->name == name);
    CHECK(resolve_model(*spec));
  }
  CHECK(data().model("Llama 3.1 8B"));  // any case, '-' or ' '
  const auto unknown = data().model("lama-3.1-8b");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().diagnostics.front().hint.find("llama-3.1-8b") != std::string::npos);
}

TEST_CASE("every family file follows its schema and lists types of its own", "[formats][hf]") {
  std::vector<std::string> seen;
  for (const char* const name : {"default", "llama", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_next", "deepseek_v3", "glm4_moe",
                                 "chatglm", "gpt_oss", "gemma", "gemma2", "gemma3", "llama4", "gpt2", "gpt_bigcode", "gpt_neox", "bloom", "opt", "mpt",
                                 "falcon", "nemotron", "grok1", "internlm2", "baichuan", "phi3", "starcoder2", "granite"}) {
    CAPTURE(name);
    const auto root = read_document(std::string(ND_TEST_DATA_DIR "/arch/") + name + ".yaml");
    REQUIRE(root);
    const auto family = read_family(*root);
    REQUIRE(family);
    CHECK(family->name == name);
    for (const std::string& type : family->model_types) {
      CHECK(std::find(seen.begin(), seen.end(), type) == seen.end());
      seen.push_back(type);
      const auto found = find_family(ND_TEST_DATA_DIR "/arch", type);
      REQUIRE(found);
      CHECK(found->name == name);
    }
  }
  const auto unknown = find_family(ND_TEST_DATA_DIR "/arch", "nobody_knows");
  REQUIRE(unknown);
  CHECK(unknown->name == "default");
}

TEST_CASE("a family file with mistakes is refused", "[formats][hf]") {
  const auto root = parse_yaml("schema: nd/arch/1\nname: x\nmodel_types: [x]\nsource: y\ndefaults: {gated_fnn: true}\nwhen:\n  - if: {a: true}\n", "x.yaml");
  REQUIRE(root);
  const auto family = read_family(*root);
  REQUIRE_FALSE(family);
  REQUIRE(family.error().diagnostics.size() == 2);
  CHECK(family.error().diagnostics[0].hint == "did you mean 'gated_ffn'?");
  CHECK(family.error().diagnostics[1].where.line == 7);
}

TEST_CASE("published totals of families beyond the presets", "[formats][hf]") {
  // Figures of the checkpoints; arithmetic of the parts beside each.
  // GPT-2: 50257*768 + 1024*768 + 12*(12*768^2 + 13*768) + 2*768
  CHECK(total_of(R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,"vocab_size":50257,"n_inner":null})") == 124439808);
  // GPT-NeoX-20B: untied, biases everywhere, two norms over the same input.
  CHECK(total_of(R"({"model_type":"gpt_neox","hidden_size":6144,"num_hidden_layers":44,"num_attention_heads":64,"intermediate_size":24576,
                     "vocab_size":50432,"max_position_embeddings":2048,"tie_word_embeddings":false,"use_parallel_residual":true})") == 20554567680);
  // BLOOM-176B: 250880*14336 table, norm behind it.
  CHECK(total_of(R"({"model_type":"bloom","n_embed":14336,"n_layer":70,"num_attention_heads":112,"vocab_size":250880})") == 176247271424);
  // MPT-7B: no biases, ALiBi.
  CHECK(total_of(R"({"model_type":"mpt","d_model":4096,"n_layers":32,"n_heads":32,"expansion_ratio":4,"max_seq_len":2048,"vocab_size":50432,"no_bias":true,
                     "attn_config":{"alibi":true}})") == 6649286656);
  // Falcon-7B: one KV head whatever num_kv_heads says; 65024*4544 + 32*(4544*(4544+128) + 4544^2 + 8*4544^2 + 2*4544) + 2*4544
  CHECK(total_of(R"({"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,"num_kv_heads":71,"multi_query":true,
                     "new_decoder_architecture":false,"parallel_attn":true,"bias":false,"alibi":false,"vocab_size":65024})") == 6921720704);
  // Mistral-7B-v0.1: windowed everywhere.
  const ResolvedModel mistral = model_of(R"({"model_type":"mistral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
                     "intermediate_size":14336,"vocab_size":32000,"sliding_window":4096,"tie_word_embeddings":false})");
  CHECK(count_parameters(mistral).total == 7241732096);
  CHECK(windowed(mistral) == 32);
  // Baichuan2-7B: 125696*4096*2 + 32*(4*4096^2 + 3*4096*11008 + 2*4096) + 4096
  CHECK(total_of(R"({"model_type":"baichuan","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"intermediate_size":11008,
                     "vocab_size":125696,"model_max_length":4096})") == 7505973248);
  // ChatGLM3-6B: qkv bias, two KV groups of 128, rotary inverse frequencies not counted.
  CHECK(total_of(R"({"model_type":"chatglm","hidden_size":4096,"num_layers":28,"num_attention_heads":32,"multi_query_group_num":2,"kv_channels":128,
                     "ffn_hidden_size":13696,"padded_vocab_size":65024,"add_qkv_bias":true,"add_bias_linear":false,"seq_length":8192})") == 6243584000);
  // Phi-3-mini
  CHECK(total_of(R"({"model_type":"phi3","hidden_size":3072,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,
                     "intermediate_size":8192,"vocab_size":32064,"tie_word_embeddings":false})") == 3821079552);
  // StarCoder2-3B: tied, biases, plain feed-forward.
  CHECK(total_of(R"({"model_type":"starcoder2","hidden_size":3072,"num_hidden_layers":30,"num_attention_heads":24,"num_key_value_heads":2,
                     "intermediate_size":12288,"vocab_size":49152,"use_bias":true})") == 3030371328);
  // Qwen-7B: the stated width is twice the real one.
  CHECK(total_of(R"({"model_type":"qwen","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"intermediate_size":22016,
                     "vocab_size":151936})") == 7721324544);
  // Grok-1: 131072*6144 + 64*(6144*(6144 + 2*1024) + 6144^2 + 8*(3*6144*32768) + 6144*8 + 4*6144) + 6144
  CHECK(total_of(R"({"model_type":"grok-1","hidden_size":6144,"num_hidden_layers":64,"num_attention_heads":48,"num_key_value_heads":8,"head_dim":128,
                     "intermediate_size":32768,"num_experts":8,"num_experts_per_tok":2,"vocab_size":131072})") == 315684820992);
  // Gemma-7B, Gemma-2-9B, Qwen2.5-7B
  CHECK(total_of(R"({"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,
                     "intermediate_size":24576,"vocab_size":256000})") == 8537680896);
  CHECK(total_of(R"({"model_type":"gemma2","hidden_size":3584,"num_hidden_layers":42,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,
                     "intermediate_size":14336,"vocab_size":256000,"sliding_window":4096})") == 9241705984);
  CHECK(total_of(R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,
                     "intermediate_size":18944,"vocab_size":152064,"tie_word_embeddings":false})") == 7615616512);
}

TEST_CASE("which layers are windowed", "[formats][hf]") {
  const auto preset = [](const char* name) { return *resolve_model(*data().model(name)); };
  const ResolvedModel gemma2 = preset("gemma-2-27b");  // even layers
  CHECK(windowed(gemma2) == 23);
  CHECK(gemma2.kinds[static_cast<std::size_t>(gemma2.layer_kind[0])].attention.window == 4096);
  CHECK(windowed(preset("gemma-3-27b")) == 52);  // all but every sixth of 62
  CHECK(windowed(preset("gpt-oss-20b")) == 12);
  CHECK(windowed(preset("qwen2.5-72b")) == 0);      // use_sliding_window is false
  CHECK(windowed(preset("mixtral-8x7b")) == 0);     // null
  CHECK(windowed(preset("llama-4-maverick")) == 36);  // three of four in chunks
  const ResolvedModel upper = model_of(R"({"model_type":"qwen2","hidden_size":64,"num_hidden_layers":8,"num_attention_heads":4,"intermediate_size":128,
      "vocab_size":100,"use_sliding_window":true,"sliding_window":32,"max_window_layers":6})");
  CHECK(windowed(upper) == 2);
}

TEST_CASE("which layers are MoE", "[formats][hf]") {
  const std::string base = R"({"hidden_size":64,"num_hidden_layers":8,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100,
      "num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":32,)";
  const auto moe = [&](const std::string& rest) {
    const ResolvedModel model = model_of(base + rest);
    std::string out;
    for (const int kind : model.layer_kind) out += model.kinds[static_cast<std::size_t>(kind)].ffn.kind == FfnKind::moe ? 'm' : 'd';
    return out;
  };
  CHECK(moe(R"("model_type":"qwen3_moe"})") == "mmmmmmmm");
  CHECK(moe(R"("model_type":"qwen3_moe","decoder_sparse_step":2,"mlp_only_layers":[3]})") == "dmdddmdm");
  CHECK(moe(R"("model_type":"deepseek_v3","first_k_dense_replace":1,"moe_layer_freq":2})") == "ddmdmdmd");
  CHECK(moe(R"("model_type":"deepseek_v3","moe_layer_freq":[0,1,1,0,0,0,0,1]})") == "dmmddddm");
  CHECK(moe(R"("model_type":"glm4_moe","mlp_layer_types":["dense","sparse","sparse","dense","dense","dense","dense","dense"]})") == "dmmddddd");
  CHECK(moe(R"("model_type":"llama4_text","interleave_moe_layer_step":2})") == "dmdmdmdm");
}

TEST_CASE("what is not priced or assumed is noted", "[formats][hf]") {
  const auto gemma = read_document(ND_TEST_DATA_DIR "/models/gemma-3-27b/config.json");
  REQUIRE(gemma);
  const auto request = read_hf(*gemma, "gemma-3-27b/config.json", data());
  REQUIRE(request);
  CHECK(has_note(*request, "vision_config"));
  const std::string shape = R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100})";
  const auto unknown = read_text(R"({"model_type":"novel_one",)" + shape);
  REQUIRE(unknown);
  CHECK(has_note(*unknown, "'novel_one' is in no family"));
  CHECK(unknown->model.gated_ffn == true);
  CHECK(unknown->model.name == "my-model");
  const auto quantised = read_text(R"({"model_type":"llama","quantization_config":{"bits":4},)" + shape);
  REQUIRE(quantised);
  CHECK(has_note(*quantised, "quantization_config"));
}

TEST_CASE("malformed configs are refused where they are wrong, all at once", "[formats][hf]") {
  using Places = std::vector<std::string>;
  CHECK(invalid("hf_missing_fields.json") ==
        Places{"1:1 num_hidden_layers missing_field", "1:1 num_attention_heads missing_field", "1:1 vocab_size missing_field"});
  CHECK(invalid("hf_moe_no_width.json") == Places{"1:1 moe_intermediate_size missing_field"});
  CHECK(invalid("not_json.json").size() == 1);
  CHECK(problems(read_text(R"([1, 2])")) == Places{"1:1  wrong_type"});
  CHECK(problems(read_text("{\"model_type\": \"llama\",\n \"hidden_size\": \"big\",\n \"num_hidden_layers\": 2.5,\n \"num_attention_heads\": 0,\n"
                           " \"tie_word_embeddings\": 3,\n \"layer_types\": 7}")) ==
        Places{"2:17 hidden_size wrong_type", "3:23 num_hidden_layers wrong_type", "4:25 num_attention_heads out_of_range",
               "5:25 tie_word_embeddings wrong_type", "6:17 layer_types wrong_type"});
  CHECK(problems(read_text("{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 6,\n"
                           " \"num_key_value_heads\": 4, \"head_dim\": 16, \"intermediate_size\": 64, \"vocab_size\": 99999999999}")) ==
        Places{"2:83 vocab_size out_of_range", "2:25 num_key_value_heads conflict"});
}

TEST_CASE("a key one letter off a missing one is a typo, not another model", "[formats][hf]") {
  const std::string shape = R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100)";
  CHECK(problems(read_text("{\"model_type\":\"llama\"," + shape + ",\n \"num_key_value_head\": 2}")) ==
        std::vector<std::string>{"2:24 num_key_value_head unknown_key"});
  // The right spelling beside it, or a key that is like nothing: no concern of ours.
  CHECK(problems(read_text("{\"model_type\":\"llama\"," + shape + ",\"num_key_value_head\": 2, \"num_key_value_heads\": 2}")).empty());
  CHECK(problems(read_text("{\"model_type\":\"llama\"," + shape + ",\"rope_scaling_factor\": 2}")).empty());
}
