// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "megatron_support.hpp"
#include "formats/tree/node.hpp"

// One case per reading of the predecessor that is known to be wrong.

using namespace nd;
using namespace nd::testing;

namespace {

/// A MindFormers file; `model` goes into model_config, `degrees` into parallel_config.
std::string mindformers(const std::string& model, const std::string& degrees) {
  return "trainer: {model_name: llama}\nrunner_config: {batch_size: 1}\noptimizer: {type: AdamW}\ncontext: {max_device_memory: 32GB}\nparallel: {enable_parallel_optimizer: True}\n"
         "parallel_config: {" + degrees + "}\nmodel: {model_config: {vocab_size: 1000, seq_length: 128, params_dtype: float32, compute_dtype: bfloat16, softmax_compute_dtype: float32, " + model + "}}\n";
}

const AttentionSpec& attention(const ResolvedModel& model) { return model.kinds.front().attention; }

ResolvedModel model_of(const Request& request) {
  const auto model = resolve_model(request.model);
  REQUIRE(model);
  return *model;
}

std::string torchtitan(const std::string& training, const std::string& parallel) {
  return "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n" + training + "[parallelism]\n" + parallel + "[activation_checkpoint]\nmode = \"none\"\n";
}

}  // namespace

TEST_CASE("Mistake 1: the head width is the stated one, not h / a", "[mistakes]") {
  // Qwen3-32B: 5120 / 64 = 80, but heads are 128 wide.
  const auto request = read_good(mindformers("hidden_size: 5120, num_hidden_layers: 64, num_attention_heads: 64, num_key_value_heads: 8, head_dim: 128, intermediate_size: 25600", "data_parallel: 8"), "f.yaml");
  CHECK(attention(model_of(request)).qk_dim == 128);
  // TorchTitan's flavors state it too: Qwen3 0.6B has 16 heads of 128 beside a width of 1024.
  const auto titan = read_good("[model]\nname = \"qwen3\"\nflavor = \"0.6B\"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n[parallelism]\ndata_parallel_shard_degree = 8\n", "f.toml", {.devices = 8});
  CHECK(attention(model_of(titan)).qk_dim == 128);
}

TEST_CASE("Mistake 2: num_experts in a MindFormers model makes it a mixture", "[mistakes]") {
  const auto request = read_good(mindformers("hidden_size: 2048, num_hidden_layers: 48, num_attention_heads: 32, num_key_value_heads: 4, head_dim: 128, intermediate_size: 6144, num_experts: 128, num_experts_per_tok: 8, moe_intermediate_size: 768", "data_parallel: 8"), "f.yaml");
  CHECK(model_of(request).has_experts());
  CHECK(model_of(request).kinds.back().ffn.experts == 128);
}

TEST_CASE("Mistake 3: no multiplier is not a multiplier of 1", "[mistakes]") {
  // 4096 x 4 x 2 / 3 = 10922, the next multiple of 256 is 11008 (Llama-2-7B); the seed's multiplier of 1 adds 1 % and gets 11264.
  const auto request = read_good(mindformers("hidden_size: 4096, num_layers: 32, num_heads: 32, multiple_of: 256", "data_parallel: 8"), "f.yaml");
  CHECK(model_of(request).kinds.front().ffn.width == 11008);
  const auto stated = read_good(mindformers("hidden_size: 8192, num_layers: 80, num_heads: 64, multiple_of: 256, ffn_dim_multiplier: 1.3", "data_parallel: 8"), "f.yaml");
  CHECK(model_of(stated).kinds.front().ffn.width == 28672);
}

TEST_CASE("Mistake 4: shards of -1 and the batch of a TorchTitan job", "[mistakes]") {
  const auto request = read_good(torchtitan("local_batch_size = 2\nglobal_batch_size = 64\n", "data_parallel_shard_degree = -1\ntensor_parallel_degree = 2\n"), "f.toml", {.devices = 16});
  CHECK(request.run.dp == 8);  // all that tp leaves, not 1
  CHECK(request.run.micro_batch_size == 2);
  CHECK(request.run.global_batch_size == 64);
  const auto piped = read_good(torchtitan("local_batch_size = 8\n", "data_parallel_shard_degree = -1\npipeline_parallel_degree = 4\npipeline_parallel_microbatch_size = 1\n"), "f.toml", {.devices = 16});
  CHECK(piped.run.micro_batch_num == 8);  // not pp
}

TEST_CASE("Mistake 5: num_local_experts counts experts", "[mistakes]") {
  const auto request = read_good(R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})", "config.json");
  CHECK(parameters(request.model) == 46'702'792'704);  // Mixtral-8x7B
}

TEST_CASE("Mistake 6: interleaved experts, windows, biases and sinks are part of a model", "[mistakes]") {
  const auto of = [](const std::string& name) { return model_of(read_good(*formats::read_text_file(std::string(ND_TEST_DATA_DIR) + "/models/" + name + "/config.json"), std::string(ND_TEST_DATA_DIR) + "/models/" + name + "/config.json")); };
  const auto gpt_oss = of("gpt-oss-20b");
  CHECK(std::any_of(gpt_oss.kinds.begin(), gpt_oss.kinds.end(), [](const LayerKind& kind) { return kind.attention.window == 128 && kind.attention.sinks && kind.attention.qkv_bias && kind.ffn.router_bias; }));
  CHECK(std::any_of(gpt_oss.kinds.begin(), gpt_oss.kinds.end(), [](const LayerKind& kind) { return kind.attention.window == 0; }));
  const auto maverick = of("llama-4-maverick");
  std::int64_t moe = 0;
  for (const int kind : maverick.layer_kind) moe += maverick.kinds[static_cast<std::size_t>(kind)].ffn.kind == FfnKind::moe ? 1 : 0;
  CHECK(moe == maverick.layers() / 2);  // every second layer
}

TEST_CASE("Mistake 7: one module's partition counts, and several need no hook", "[mistakes]") {
  CHECK(read_example("mindspeed/llama31_70b.json").run.layers_per_chunk == std::vector<Counts>{{19, 21, 21, 19}});
  CHECK(read_example("mindspeed/vlm_7b.json").model.vision_parameters > 0);
}

TEST_CASE("Mistake 8: no layer is dropped where the stages do not divide them", "[mistakes]") {
  const auto request = read_good(mindformers("hidden_size: 64, num_layers: 10, num_heads: 4, intermediate_size: 256, offset: 0", "data_parallel: 2, pipeline_stage: 4, micro_batch_num: 8"), "f.yaml");
  CHECK(model_of(request).layers() == 10);
  std::int64_t placed = 0;
  for (const auto& chunk : request.run.layers_per_chunk)
    for (const auto count : chunk) placed += count;
  CHECK((request.run.layers_per_chunk.empty() || placed == 10));
  // A stated offset that leaves layers out is refused.
  CHECK_FALSE(read(mindformers("hidden_size: 64, num_layers: 10, num_heads: 4, intermediate_size: 256, offset: [0, 0, 0, 0]", "data_parallel: 2, pipeline_stage: 4, micro_batch_num: 8"), "f.yaml"));
}

TEST_CASE("Mistake 9: a batch that the ranks cannot share is not replaced by pp micro-batches", "[mistakes]") {
  const auto request = read(launch("--global-batch-size 33 --tensor-model-parallel-size 1"));
  bool refused = !request;
  if (request) {
    const auto profile = data().framework(request->run.framework, "", request->run.features);
    REQUIRE(profile);
    refused = !resolve_run(request->run, model_of(*request), *profile);
  }
  CHECK(refused);
}

TEST_CASE("Mistake 10: .yml is YAML, and unknown words of a search config are refused", "[mistakes]") {
  const std::string text = mindformers("hidden_size: 64, num_layers: 8, num_heads: 4, intermediate_size: 256", "data_parallel: 8");
  CHECK(read(text, "f.yml"));
  const std::string search = "model: {name: m, num_hidden_layers: 8, hidden_size: 64, intermediate_size: 256, num_attention_heads: 4, vocab_size: 1000, max_position_embeddings: 128}\ncluster: {num_nodes: 1, cards_per_node: 8}\nconstraint: {global_batch_size: 8}\n";
  const auto wrong = problems(read(search + "parallelism: {tp: automatic}\n", "s.yaml"));
  REQUIRE_FALSE(wrong.empty());
  CHECK(wrong.front().find("s.yaml:4:19") == std::string("error: ").size());
}

TEST_CASE("Mistake 11: a 910B is an A2", "[mistakes]") {
  const auto a2 = data().device("A2"), named = data().device("910B");
  REQUIRE(a2);
  REQUIRE(named);
  CHECK(a2->name == named->name);
}

TEST_CASE("Mistake 12: experts are no factor of the devices", "[mistakes]") {
  const auto request = read_example("mindformers/deepseek3_671b.yaml");
  const auto& run = request.run;
  REQUIRE(run.ep.value_or(1) > 1);
  const auto profile = data().framework(run.framework, "", run.features);
  REQUIRE(profile);
  RunSpec spec = run;
  spec.devices = *run.dp * run.tp.value_or(1) * run.pp.value_or(1) * run.cp.value_or(1);
  const auto resolved = resolve_run(spec, model_of(request), *profile);
  REQUIRE(resolved);
  CHECK(resolved->strategy.devices() == *spec.devices);
}

TEST_CASE("Mistake 13: a train.yaml has one sequence length, whoever reads it", "[mistakes]") {
  const auto path = std::filesystem::temp_directory_path() / "nd_mistake_13.yaml";
  std::ofstream(path) << "model: {config_overrides: {num_hidden_layers: 8, hidden_size: 64, num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000, max_position_embeddings: 4096}}\n"
                         "training: {global_batch_size: 8, micro_batch_size: 1}\naccelerator: {tp_size: 1}\ndataset: {data_config: {seq_length: 2048}}\n";
  const auto alone = read_request(path.string(), "", data(), {.devices = 8});
  REQUIRE(alone);
  CHECK(alone->run.seq_length == 2048);
  const auto searched = read("train_yaml: nd_mistake_13.yaml\nparallelism: {tp: auto}\ncluster: {num_nodes: 1, cards_per_node: 8}\n", (path.parent_path() / "s.yaml").string(), {.devices = 8});
  for (const auto& line : problems(searched)) UNSCOPED_INFO(line);
  REQUIRE(searched);
  CHECK(searched->run.seq_length == 2048);
  std::filesystem::remove(path);
}

TEST_CASE("Mistake 14: MindFormers' own defaults, not 0", "[mistakes]") {
  const auto request = read_good(mindformers("hidden_size: 64, num_layers: 8, num_heads: 4, intermediate_size: 256", "data_parallel: 8"), "f.yaml");
  CHECK(request.run.micro_batch_num == 1);
  CHECK(request.run.global_batch_size.value_or(8) == 8);
}
