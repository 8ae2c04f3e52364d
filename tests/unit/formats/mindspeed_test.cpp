// SPDX-License-Identifier: Apache-2.0
#include "megatron_support.hpp"

using namespace nd;
using namespace nd::testing;

namespace {

/// A complete file; `tmp` and `module` are added to its sections.
std::string file(const std::string& tmp, const std::string& module) {
  return R"({"model_id": "run", "tmp": {"seqlen": 128)" + tmp +
         R"(}, "text": {"model_id": "m", "num_layers": 8, "hidden_size": 64, "ffn_hidden_size": 256, "num_attention_heads": 4, "vocab_size": 1024, "params_dtype": "bf16")" +
         module + "}}";
}

RunSpec run_of(const std::string& tmp, const std::string& module) { return read_good(file(tmp, module), "f.json").run; }

}  // namespace

// Totals are the published ones; degrees, partitions and recompute lists what the files state; micro-batches = pp (the format has none).
TEST_CASE("MindSpeed: one module, its partition counts", "[mindspeed]") {
  const Request request = read_example("mindspeed/llama31_70b.json");
  const auto& run = request.run;
  CHECK(request.format == "mindspeed");
  CHECK(parameters(request.model) == 70'553'706'496);
  CHECK(run.devices == 128);
  CHECK(run.dp == 4);
  CHECK(run.tp == 8);
  CHECK(run.pp == 4);
  CHECK(run.micro_batch_num == 4);
  CHECK(run.global_batch_size == 16);
  CHECK(run.seq_length == 8192);
  CHECK(run.sequence_parallel == true);
  CHECK(run.layers_per_chunk == std::vector<Counts>{{19, 21, 21, 19}});
  CHECK(run.full_recompute_layers == Counts{6, 6, 6, 6});
  CHECK(run.recompute == Recompute::full);
  CHECK(run.param_bytes == 2.0);
  CHECK(run.softmax_bytes == 4.0);
  CHECK(run.device_memory->value == 55.0 * 1073741824.0);
}

TEST_CASE("MindSpeed: experts and chunks", "[mindspeed]") {
  const Request request = read_example("mindspeed/qwen3_30b_a3b.json");
  const auto& run = request.run;
  CHECK(parameters(request.model) == 30'532'122'624);
  CHECK(request.model.qk_norm == true);
  CHECK(request.model.num_experts == 128);
  CHECK(request.model.num_experts_per_tok == 8);
  CHECK(request.model.moe_intermediate_size == 768);
  CHECK(run.devices == 32);
  CHECK(run.ep == 16);
  CHECK(run.etp == 1);
  CHECK(run.vpp == 2);
  CHECK(run.micro_batch_num == 2);
  CHECK(run.global_batch_size == 32);
  CHECK(run.layers_per_chunk == std::vector<Counts>{{12, 12}, {12, 12}});
  CHECK(run.full_recompute_layers == Counts{18, 18});  // 12 + 6 over the chunks of a stage
  CHECK(run.schedule == Schedule::interleaved);
}

TEST_CASE("MindSpeed: of several modules the one with the vocabulary is priced", "[mindspeed]") {
  const Request request = read_example("mindspeed/vlm_7b.json");
  CHECK(request.model.name == "lm_28l");
  CHECK(request.model.num_key_value_heads == 4);
  CHECK(request.run.layers_per_chunk == std::vector<Counts>{{1, 9, 9, 9}});
  CHECK(request.run.devices == 16);
  CHECK(request.run.global_batch_size == 8);
  // vit_32l: 32 x (4 x 1280^2 + 3 x 1280 x 3420 + 2 x 1280) and the final norm, besides one row of table and head.
  CHECK(request.model.vision_parameters == 32LL * (4 * 1280 * 1280 + 3 * 1280 * 3420 + 2 * 1280) + 1280 + 2 * 1280);
  CHECK(warns(request, "only the parameters count: vit_32l"));
}

TEST_CASE("MindSpeed: forms of the lists", "[mindspeed]") {
  CHECK(run_of(R"(, "pp": 2)", "").layers_per_chunk.empty());
  CHECK(run_of(R"(, "pp": 2)", R"(, "pipeline_num_layers": [3, 5])").layers_per_chunk == std::vector<Counts>{{3, 5}});
  CHECK(run_of(R"(, "pp": 2, "vpp": 2)", R"(, "pipeline_num_layers": [3, 5])").layers_per_chunk == std::vector<Counts>{{2, 3}, {1, 2}});
  CHECK(run_of(R"(, "pp": 2, "vpp": 2)", R"(, "recompute_num_layers": 1)").full_recompute_layers == Counts{2, 2});
  CHECK(run_of(R"(, "pp": 2)", R"(, "recompute_num_layers": 0)").recompute == Recompute::off);
  CHECK(run_of(R"(, "tp": 2, "dp": 0)", R"(, "tensor_model_parallel_size": 4)").tp == 4);  // the larger of both
  const auto bad = [](const std::string& tmp, const std::string& module) { return problems(read(file(tmp, module), "f.json")); };
  CHECK(bad(R"(, "pp": 2)", R"(, "pipeline_num_layers": [3, 4])")[0].find("the stages hold 7 layers, the module has 8") != std::string::npos);
  CHECK(bad(R"(, "pp": 2)", R"(, "pipeline_num_layers": [3])")[0].find("has 1 entries for 2 stages") != std::string::npos);
  CHECK(bad(R"(, "pp": 2)", R"(, "recompute_num_layers": [[1, 1], [1, 1]])")[0].find("has 2 lists for 1 chunks") != std::string::npos);
  CHECK(bad(R"(, "pp": 2)", R"(, "recompute_num_layers": "all")").size() == 1);
  CHECK(bad(R"(, "pp": -2)", "").size() == 1);
  CHECK(bad(R"(, "pq": 2)", "")[0].find("pq") != std::string::npos);
  CHECK(problems(read(R"({"tmp": {"dp": 1}})", "f.json")).size() == 1);
  CHECK(problems(read(R"({"tmp": {"dp": 1}, "a": {"model_id": "x"}})", "f.json")).size() >= 4);
}
