// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/readers/reader.hpp"

using namespace nd;
using namespace nd::formats;

namespace {

/// A small mixture-of-experts configuration with further or other keys; the problems of reading it, one per line.
std::string problems(const std::string& keys) {
  static const DataStore data(ND_TEST_DATA_DIR);
  const std::string base = "\"model_type\": \"deepseek_v3\", \"hidden_size\": 64, \"num_hidden_layers\": 4, \"num_attention_heads\": 4, \"vocab_size\": 100, \"intermediate_size\": 128, "
                           "\"moe_intermediate_size\": 32, \"n_routed_experts\": 8, \"num_experts_per_tok\": 2";
  const auto result = parse_json("{" + keys + (keys.empty() ? "" : ", ") + base + "}", "config.json").and_then([](const ConfigNode& root) { return read_hf(root, "config.json", data); });
  std::string out;
  if (result) return out;
  for (const auto& one : result.error().diagnostics)
    out += std::to_string(one.where.line) + ":" + std::to_string(one.where.column) + " " + one.where.path + ": " + one.message + (one.hint.empty() ? "" : " (" + one.hint + ")") + "\n";
  return out;
}

}  // namespace

TEST_CASE("config.json: values that no library has are refused at their place", "[hf]") {
  CHECK(problems("").empty());
  const std::vector<std::pair<std::string, std::string>> bad{
      {"\"torch_dtype\": \"float7\"", "1:17 torch_dtype: 'float7' is no data type (did you mean 'float"},
      {"\"dtype\": \"int8\"", "1:11 dtype: 'int8' is no data type"},
      {"\"hidden_act\": \"foo\"", "1:16 hidden_act: 'foo' is no activation"},
      {"\"hidden_act\": \"sillu\"", "did you mean 'silu'?"},
      {"\"hidden_act\": 3", "1:16 hidden_act: must be a string"},
      {"\"first_k_dense_replace\": 5", "1:27 first_k_dense_replace: 5 leading dense layers, the model has 4 layers"},
      {"\"mlp_only_layers\": [0, 4]", "mlp_only_layers: there is no layer 4, the model has 4 layers"},
      {"\"n_group\": 3, \"topk_group\": 1", "1:13 n_group: 8 experts are no multiple of 3 groups"},
      {"\"n_group\": 4, \"topk_group\": 5", "topk_group: must be from 1 to n_group 4, is 5"},
      {"\"n_group\": 0", "n_group: must be at least 1, is 0"},
      {"\"num_key_value_heads\": 3", "num_key_value_heads"},
      {"\"layer_types\": [\"full_attention\"]", "layer_types"},
      {"\"tie_word_embeddings\": \"yes\"", "tie_word_embeddings"},
      {"\"head_dim\": -1", "head_dim"},
      {"\"attention_dropout\": 2.0", "attention_dropout"}};
  for (const auto& [keys, wanted] : bad) {
    const auto text = problems(keys);
    INFO(keys << "\n" << text);
    CHECK(text.find(wanted) != std::string::npos);
  }
}

TEST_CASE("config.json: the spellings that are in use are accepted", "[hf]") {
  for (const char* const keys : {"\"torch_dtype\": \"torch.bfloat16\"", "\"torch_dtype\": \"auto\"", "\"dtype\": \"float32\"", "\"torch_dtype\": null", "\"hidden_act\": \"gelu_pytorch_tanh\"",
                                 "\"hidden_act\": \"silu\"", "\"hidden_act\": null", "\"first_k_dense_replace\": 3", "\"n_group\": 8, \"topk_group\": 4", "\"n_group\": 1"}) {
    INFO(keys);
    CHECK(problems(keys).empty());
  }
}

TEST_CASE("config.json: all of it at once", "[hf]") {
  const auto text = problems("\"torch_dtype\": \"float7\", \"hidden_act\": \"foo\", \"n_group\": 3");
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
