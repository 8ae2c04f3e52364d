// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "formats/readers/mindformers_model.hpp"
#include "formats/readers/mindformers_run.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/values.hpp"
#include "nd/formats.hpp"
#include "nd/ops.hpp"

using namespace nd;

namespace {

const DataStore& data() {
  static const DataStore kData(ND_TEST_DATA_DIR);
  return kData;
}

Request read_example(const std::string& name) {
  const auto request = read_request(std::string(ND_TEST_DATA_DIR) + "/examples/mindformers/" + name, "", data());
  if (!request)
    for (const auto& one : request.error().diagnostics) UNSCOPED_INFO(to_text(one));
  REQUIRE(request);
  CHECK(request->format == "mindformers");
  return *request;
}

std::int64_t parameters(const Request& request) {
  const auto model = resolve_model(request.model);
  REQUIRE(model);
  return count_parameters(*model).total;
}

/// Text of every problem without the folder of the file.
std::vector<std::string> problems(const Result<Request>& result) {
  std::vector<std::string> out;
  if (result) return out;
  for (Diagnostic one : result.error().diagnostics) {
    one.where.file = one.where.file.substr(one.where.file.rfind('/') + 1);
    out.push_back(to_text(one));
  }
  return out;
}

std::vector<std::string> problems_of(const std::string& name) {
  return problems(read_request(std::string(ND_TEST_SOURCE_DIR) + "/tests/unit/formats/invalid/" + name, "", data()));
}

using Counts = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

/// A small complete file; `model`, `degrees` and `rest` are added to it.
Result<Request> read_text(const std::string& model, const std::string& degrees, const std::string& rest = "") {
  const std::string text =
      "trainer: {model_name: llama}\nrunner_config: {batch_size: 1}\noptimizer: {type: AdamW}\ncontext: {max_device_memory: 32GB}\n"
      "parallel: {enable_parallel_optimizer: True}\n"
      "parallel_config: {" + degrees + "}\n"
      "model: {model_config: {hidden_size: 64, num_heads: 4, vocab_size: 1000, seq_length: 128, param_init_type: float32, "
      "compute_dtype: bfloat16, softmax_compute_type: float32" + model + "}}\n" + rest;
  const auto root = formats::parse_yaml(text, "f.yaml");
  REQUIRE(root);
  return formats::read_mindformers(*root, "f.yaml", data());
}
constexpr const char* kWidth = ", intermediate_size: 256";

}  // namespace

// The figures of these four cases are the published dimensions of the models and what the files state; totals are the
// published parameter counts of the checkpoints.
TEST_CASE("MindFormers: Llama-3.1-70B, legacy spelling", "[mindformers]") {
  const Request request = read_example("llama3_70b.yaml");
  const RunSpec& run = request.run;
  CHECK(parameters(request) == 70'553'706'496);
  CHECK(request.model.intermediate_size == 28672);
  CHECK(request.model.num_key_value_heads == 8);
  CHECK(resolve_model(request.model)->kinds[0].attention.qk_dim == 128);
  CHECK(run.devices == 256);
  CHECK(run.dp == 8);
  CHECK(run.tp == 8);
  CHECK(run.pp == 4);
  CHECK(run.cp == 1);
  CHECK(run.ep == 1);
  CHECK(run.vpp == 1);
  CHECK(run.micro_batch_size == 1);
  CHECK(run.micro_batch_num == 16);
  CHECK(run.global_batch_size == 128);  // 1 x 8 x 16
  CHECK(run.seq_length == 8192);
  CHECK(run.sequence_parallel == true);
  CHECK(run.optimizer == OptimizerKind::adamw);
  CHECK(run.optimizer_shard == 8);
  CHECK(run.zero == ZeroLevel::optimizer);  // gradient_accumulation_shard is off
  CHECK(run.layers_per_chunk == std::vector<Counts>{{19, 21, 21, 19}});
  CHECK(run.full_recompute_layers == Counts{6, 4, 2, 0});
  CHECK(run.recompute == Recompute::full);
  CHECK(run.selective_recompute_layers.empty());
  CHECK(run.param_bytes == 4.0);
  CHECK(run.compute_dtype == Dtype::bf16);
  CHECK(run.softmax_bytes == 4.0);
  CHECK(run.device_memory->value == 58.0 * 1073741824.0);
  CHECK(run.flash_attention == true);
  CHECK(run.framework == "mindformers");
  CHECK(run.schedule == Schedule::one_f_one_b);
  CHECK(run.origins.at("tp").where.line == 50);
  CHECK(run.origins.at("tp").where.column == 19);
  CHECK(run.origins.at("tp").where.path == "parallel_config.model_parallel");
  CHECK(run.origins.at("tp").kind == Origin::Kind::file);
}

TEST_CASE("MindFormers: DeepSeek-V3 with an MTP block in the offset", "[mindformers]") {
  const Request request = read_example("deepseek3_671b.yaml");
  const RunSpec& run = request.run;
  const ModelSpec& model = request.model;
  CHECK(model.model_type == "deepseek_v3");
  CHECK(parameters(request) == 671'026'419'200);
  CHECK(count_parameters(*resolve_model(model)).mtp == 682'636'487'424 - 671'026'419'200);
  CHECK(model.num_hidden_layers == 61);
  CHECK(model.num_key_value_heads == 128);
  CHECK(model.q_lora_rank == 1536);
  CHECK(model.kv_lora_rank == 512);
  CHECK(model.qk_nope_head_dim == 128);
  CHECK(model.qk_rope_head_dim == 64);
  CHECK(model.v_head_dim == 128);
  CHECK(model.num_experts == 256);
  CHECK(model.num_experts_per_tok == 8);
  CHECK(model.num_shared_experts == 1);
  CHECK(model.moe_intermediate_size == 2048);
  CHECK(model.first_k_dense_replace == 3);
  CHECK(model.mtp_depth == 1);
  CHECK(run.devices == 1024);
  CHECK(run.dp == 16);
  CHECK(run.ep == 8);
  CHECK(run.etp == 1);
  CHECK(run.global_batch_size == 512);  // 1 x 16 x 32
  CHECK(run.optimizer_shard == 4);
  CHECK(run.capacity_factor == 1.5);
  // 62 // 16 = 3, fifteen stages + 1, the last - 1: 4 x 15 + 2 = 62, of which the MTP block on the last stage is not counted.
  Counts layers(16, 4);
  layers.back() = 1;
  CHECK(run.layers_per_chunk == std::vector<Counts>{layers});
  CHECK(run.full_recompute_layers == Counts{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 0});
  CHECK(run.device_memory->value == 55.0 * 1073741824.0);
}

TEST_CASE("MindFormers: Qwen3-32B, mcore spelling with virtual stages", "[mindformers]") {
  const Request request = read_example("qwen3_32b_mcore.yaml");
  const RunSpec& run = request.run;
  CHECK(parameters(request) == 32'762'123'264);
  CHECK(request.model.head_dim == 128);  // not 5120 / 64 = 80
  CHECK(request.model.intermediate_size == 25600);
  CHECK(request.model.qk_norm == true);
  CHECK(request.model.tie_word_embeddings == false);
  CHECK(run.devices == 64);
  CHECK(run.vpp == 2);
  CHECK(run.global_batch_size == 64);
  CHECK(run.zero == ZeroLevel::gradients);  // gradient_accumulation_shard is on
  CHECK(run.optimizer_shard == 4);
  CHECK(run.layers_per_chunk == std::vector<Counts>{{9, 8, 8, 8}, {8, 8, 8, 7}});
  CHECK(run.recompute == Recompute::selective);
  CHECK(run.full_recompute_layers.empty());
  CHECK(run.selective_recompute_layers == Counts{4, 3, 2, 1});
  CHECK(run.schedule == Schedule::interleaved);
}

TEST_CASE("MindFormers: Qwen3-30B-A3B, experts in model_config", "[mindformers]") {
  const Request request = read_example("qwen3_30b_a3b_mcore.yaml");
  const RunSpec& run = request.run;
  CHECK(parameters(request) == 30'532'122'624);
  CHECK(request.model.num_experts == 128);
  CHECK(request.model.num_experts_per_tok == 8);
  CHECK(request.model.moe_intermediate_size == 768);
  CHECK(request.model.num_shared_experts.value_or(0) == 0);
  CHECK(run.devices == 32);
  CHECK(run.ep == 8);
  CHECK_FALSE(run.etp);
  CHECK(run.sequence_parallel == false);
  CHECK(run.optimizer_shard == 16);  // no size stated: all data-parallel ranks
  CHECK(run.layers_per_chunk == std::vector<Counts>{{24, 24}});
  CHECK(run.recompute == Recompute::full);
  CHECK(run.full_recompute_layers.empty());
  CHECK(run.device_memory->value == 56.0 * 1073741824.0);
}

TEST_CASE("MindFormers: what cannot be read is refused with its place", "[mindformers]") {
  CHECK(problems_of("mf_no_memory.yaml") ==
        Texts{"error: mf_no_memory.yaml:5:10: context.max_device_memory: 'max_device_memory' is required: the memory budget of a device"});
  CHECK(problems_of("mf_no_param_dtype.yaml") ==
        Texts{"error: mf_no_param_dtype.yaml:10:17: model.model_config.param_init_type: no byte width for the parameters (param_init_type or params_dtype)"});
  CHECK(problems_of("mf_offset_shape.yaml") ==
        Texts{"error: mf_offset_shape.yaml:8:31: recompute_config.recompute: recompute has 5 entries for 4 stages (one entry per stage, or one list of "
              "them per virtual stage)",
              "error: mf_offset_shape.yaml:10:132: model.model_config.offset: offset has 3 entries for 4 stages (one entry per stage, or one list of "
              "them per virtual stage)"});
  CHECK(problems_of("mf_expert_layout.yaml") ==
        Texts{"error: mf_expert_layout.yaml:7:92: parallel_config.expert_parallel: EP 64 over a stage of 4 ranks leaves no expert group (expert "
              "parallelism is taken out of data x model x context parallelism)"});
  CHECK(problems_of("not_a_mapping.yaml") == Texts{"error: not_a_mapping.yaml:1:1: the top level must be a mapping, is a list"});
  REQUIRE(problems_of("not_yaml.yaml").size() == 1);
  CHECK(problems_of("not_yaml.yaml")[0].find("error: not_yaml.yaml:3:3: not a YAML document: ") == 0);
  REQUIRE(problems_of("not_json.json").size() == 1);
  CHECK(problems_of("not_json.json")[0].find("error: not_json.json:2:1: not a JSON document: ") == 0);
}

TEST_CASE("MindFormers: all problems of a file at once", "[mindformers]") {
  const auto result = read_text(", num_layers: 4, intermediate_size: abc, pp_interleave_num: 0, vocab_sise: 12", "data_parallel: 2.5, model_paralel: 2",
                                "recompute_config: {recompute: maybe}\n");
  CHECK(problems(result) == Texts{
            "error: f.yaml:6:34: parallel_config.data_parallel: must be an integer, is '2.5' (a real number)",
            "error: f.yaml:6:39: parallel_config.model_paralel: unknown key 'model_paralel' (did you mean 'model_parallel'?)",
            "error: f.yaml:7:206: model.model_config.intermediate_size: must be an integer, is 'abc' (a string)",
            "error: f.yaml:7:230: model.model_config.pp_interleave_num: must be at least 1, is 0",
            "error: f.yaml:7:233: model.model_config.vocab_sise: unknown key 'vocab_sise' (did you mean 'vocab_size'?)",
            "error: f.yaml:8:31: recompute_config.recompute: must be true, false, a layer count or a list of them, is 'maybe' (a string)",
        });
  const auto empty = formats::parse_yaml("parallel_config: {}\nmodel: {}\n", "f.yaml");
  const auto missing = problems(formats::read_mindformers(*empty, "f.yaml", data()));
  CHECK(std::find(missing.begin(), missing.end(), "error: f.yaml:2:8: model.model_config: the section 'model.model_config' is required: the model, or pretrained_model_dir, a folder with its config.json") != missing.end());
}

TEST_CASE("MindFormers: spellings that contradict each other", "[mindformers]") {
  CHECK(read_text(", num_layers: 4, num_hidden_layers: 4, intermediate_size: 256", "data_parallel: 1"));
  CHECK(problems(read_text(", num_layers: 4, num_hidden_layers: 5, intermediate_size: 256", "")) ==
        Texts{"error: f.yaml:7:206: model.model_config.num_hidden_layers: differs from 'num_layers', another spelling of the same setting (keep one of the two)"});
  CHECK_FALSE(read_text(", num_layers: 4, intermediate_size: 256, tie_word_embeddings: True, untie_embeddings_and_output_weights: True", ""));
  CHECK(read_text(", num_layers: 4, intermediate_size: 256, tie_word_embeddings: True, untie_embeddings_and_output_weights: False", "")
            ->model.tie_word_embeddings == true);
  CHECK_FALSE(read_text(", num_layers: 4, intermediate_size: 256, num_experts: 8, num_experts_per_tok: 2", "", "moe_config: {expert_num: 4}\n"));
}

TEST_CASE("MindFormers: the model of pretrained_model_dir", "[mindformers]") {
  const auto folder = std::filesystem::temp_directory_path() / "nd_mindformers_pretrained";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "qwen3");
  std::filesystem::copy_file(std::string(ND_TEST_DATA_DIR) + "/models/qwen3-30b-a3b/config.json", folder / "qwen3/config.json");
  const auto read = [&](const std::string& first, const std::string& model) {
    std::ofstream(folder / "run.yaml") << first << "runner_config: {batch_size: 1}\noptimizer: {type: AdamW}\ncontext: {max_device_memory: 58GB}\n"
                                       << "parallel: {enable_parallel_optimizer: True}\nparallel_config: {data_parallel: 2}\n" << model;
    return read_request((folder / "run.yaml").string(), "mindformers", data());
  };
  const std::string fields = "model: {model_config: {seq_length: 4096, compute_dtype: bfloat16, params_dtype: float32}}\n";
  const auto plain = read("pretrained_model_dir: ./qwen3\n", fields);
  REQUIRE(plain);
  const auto preset = data().model("qwen3-30b-a3b");
  REQUIRE(preset);
  CHECK(count_parameters(*resolve_model(plain->model)).total == count_parameters(*resolve_model(*preset)).total);
  CHECK(plain->model.model_type == "qwen3_moe");
  // A preset's name, where there is no such folder.
  CHECK(read("pretrained_model_dir: qwen3-30b-a3b\n", fields)->model.num_experts == 128);
  // model_config wins: 4 of the 48 layers.
  const auto cropped = read("pretrained_model_dir: ./qwen3\n", "model: {model_config: {num_layers: 4, seq_length: 4096, compute_dtype: bfloat16, params_dtype: float32}}\n");
  REQUIRE(cropped);
  CHECK(cropped->model.num_hidden_layers == 4);
  CHECK(cropped->model.num_experts == 128);
  // Not there: an error where nothing else says what is trained, a warning where model_config does.
  const auto missing = problems(read("pretrained_model_dir: ./none\n", fields));
  REQUIRE_FALSE(missing.empty());
  CHECK(missing.front().find("error: run.yaml:1:23: pretrained_model_dir: the model's config.json cannot be read") == 0);
  const auto whole = read("pretrained_model_dir: ./none\n",
                          "model: {model_config: {num_layers: 2, hidden_size: 64, num_heads: 4, vocab_size: 1000, seq_length: 128, compute_dtype: bfloat16, params_dtype: float32}}\n");
  REQUIRE(whole);
  CHECK(std::any_of(whole->notes.begin(), whole->notes.end(), [](const Diagnostic& note) {
    return note.severity == Severity::warning && note.where.path == "pretrained_model_dir";
  }));
  std::filesystem::remove_all(folder);
}

TEST_CASE("MindFormers: offsets", "[mindformers]") {
  const auto layers = [](const std::string& model, const std::string& degrees) {
    const auto request = read_text(kWidth + model, degrees);
    return request ? request->run.layers_per_chunk : std::vector<Counts>{};
  };
  // 10 layers, 4 stages: 10 // 4 = 2 each, the remainder of 2 on the first two stages.
  CHECK(layers(", num_layers: 10, offset: 0", "pipeline_stage: 4") == std::vector<Counts>{{3, 3, 2, 2}});
  CHECK(layers(", num_layers: 10", "pipeline_stage: 4").empty());
  CHECK(layers(", num_layers: 10, offset: [1, 0, 0, 1]", "pipeline_stage: 4") == std::vector<Counts>{{3, 2, 2, 3}});
  // A flat list with two chunks: base 16 // 4 // 2 = 2; 3 // 2 = 1 to each chunk, 1 more to the last; -3 // 2 = -2, then 1 back.
  CHECK(layers(", num_layers: 16, pp_interleave_num: 2, offset: [3, 0, 0, -3]", "pipeline_stage: 4") == std::vector<Counts>{{3, 2, 2, 0}, {4, 2, 2, 1}});
  // num_nextn_predict_layers sits behind the layers the offset counts, mtp_depth among them.
  CHECK(layers(", num_layers: 8, num_nextn_predict_layers: 1, offset: [0, 0]", "pipeline_stage: 2") == std::vector<Counts>{{4, 4}});
  CHECK(layers(", num_layers: 7, mtp_depth: 1, offset: [0, 0]", "pipeline_stage: 2") == std::vector<Counts>{{4, 3}});
  CHECK(problems(read_text(std::string(kWidth) + ", num_layers: 10, offset: [1, 0, 0, 2]", "pipeline_stage: 4")).size() == 1);
  CHECK(problems(read_text(std::string(kWidth) + ", num_layers: 8, offset: [3, -3, 0, 0]", "pipeline_stage: 4"))[0].find("a stage with -1 layers") !=
        std::string::npos);
  CHECK(problems(read_text(std::string(kWidth) + ", num_layers: 8, pp_interleave_num: 2, offset: [[0, 0]]", "pipeline_stage: 2"))[0].find(
            "offset has 1 lists for 2 chunks a stage") != std::string::npos);
  CHECK_FALSE(read_text(std::string(kWidth) + ", num_layers: 8, offset: x", "pipeline_stage: 2"));
}

TEST_CASE("MindFormers: recompute switches", "[mindformers]") {
  const auto run = [](const std::string& switches, const std::string& more = "") {
    const auto request = read_text(kWidth + std::string(", num_layers: 8") + more, "pipeline_stage: 2", "recompute_config: {" + switches + "}\n");
    REQUIRE(request);
    return request->run;
  };
  CHECK(run("recompute: False").recompute == Recompute::off);
  CHECK(run("recompute: 2").full_recompute_layers == Counts{2, 2});
  CHECK(run("recompute: [[1, 0], [1, 2]]", ", pp_interleave_num: 2").full_recompute_layers == Counts{2, 2});
  CHECK(run("select_recompute: True").recompute == Recompute::selective);
  CHECK(run("select_recompute: ['feed_forward\\\\.mul']").recompute == Recompute::selective);
  CHECK(run("recompute: [0, 0], select_recompute: [1, 0]").recompute == Recompute::selective);
  const RunSpec both = run("recompute: [1, 0], select_recompute: True");
  CHECK(both.recompute == Recompute::full);
  CHECK(both.full_recompute_layers == Counts{1, 0});
  CHECK(both.selective_recompute_layers == Counts{8, 8});  // whatever the counted ones leave of a stage
  CHECK_FALSE(run("mp_comm_recompute: True").recompute);
}

TEST_CASE("MindFormers: optimizer sharding, schedule and context parallelism", "[mindformers]") {
  const auto request = [](const std::string& degrees, const std::string& parallel) {
    const auto root = formats::parse_yaml(
        "trainer: {model_name: llama}\nrunner_config: {batch_size: 1, gradient_accumulation_steps: 2}\ncontext: {max_device_memory: 32GB}\nparallel: {" +
            parallel + "}\nparallel_config: {" + degrees +
            "}\nmodel: {model_config: {num_layers: 4, hidden_size: 64, num_heads: 4, intermediate_size: 256, vocab_size: 1000, seq_length: 128, "
            "param_init_type: bfloat16, compute_dtype: float16, attention_softmax_in_fp32: False}}\n",
        "f.yaml");
    REQUIRE(root);
    auto result = formats::read_mindformers(*root, "f.yaml", data());
    for (const auto& text : problems(result)) UNSCOPED_INFO(text);
    REQUIRE(result);
    return *result;
  };
  const Request off = request("data_parallel: 8, micro_batch_num: 3", "enable_parallel_optimizer: False");
  CHECK(off.run.zero == ZeroLevel::none);
  CHECK(off.run.optimizer_shard == 1);
  CHECK(off.run.micro_batch_num == 6);       // 3 x 2 accumulation steps
  CHECK(off.run.global_batch_size == 48);    // 1 x 8 x 6
  CHECK(off.run.param_bytes == 2.0);
  CHECK(off.run.compute_dtype == Dtype::fp16);
  CHECK(off.run.softmax_bytes == 2.0);
  CHECK_FALSE(off.run.optimizer);
  const auto warned = [](const Request& of, const std::string& part) {
    return std::any_of(of.notes.begin(), of.notes.end(), [&](const Diagnostic& one) { return one.message.find(part) != std::string::npos; });
  };
  CHECK(warned(off, "AdamW is assumed"));
  CHECK(warned(off, "accumulation steps"));
  const Request all = request("data_parallel: 8", "enable_parallel_optimizer: True, parallel_optimizer_config: {optimizer_weight_shard_size: -1}");
  CHECK(all.run.optimizer_shard == 8);
  const Request odd = request("data_parallel: 8", "enable_parallel_optimizer: True, parallel_optimizer_config: {optimizer_weight_shard_size: 3}");
  CHECK(odd.run.optimizer_shard == 8);
  CHECK(warned(odd, "does not divide"));
  const Request variant = request("pipeline_stage: 2", "pipeline_config: {pipeline_scheduler: zero_bubble_v}");
  CHECK(variant.run.schedule == Schedule::zb_v);
  CHECK(variant.run.vpp == 2);
  CHECK_FALSE(warned(variant, "priced as 1f1b"));
  const Request parts = request("pipeline_stage: 2, seq_split_num: 4", "pipeline_config: {pipeline_scheduler: seqpipe}");
  CHECK(parts.run.schedule == Schedule::seq_1f1b);
  CHECK(parts.run.seq_split == 4);
  CHECK(request("context_parallel: 4", "").run.cp_algorithm == CpAlgorithm::all_gather);
  CHECK(request("context_parallel: 4, context_parallel_algo: ulysses_cp", "").run.cp_algorithm == CpAlgorithm::ulysses);
  CHECK(request("context_parallel: 4, context_parallel_algo: hybrid_cp, ulysses_degree_in_cp: 4", "").run.cp_algorithm == CpAlgorithm::ulysses);
  CHECK(warned(request("context_parallel: 4, context_parallel_algo: hybrid_cp, ulysses_degree_in_cp: 2", ""), "hybrid_cp is priced"));
  CHECK(problems(read_text(std::string(kWidth) + ", num_layers: 4", "context_parallel_algo: ring"))[0].find("'ring' is not known") != std::string::npos);
}

TEST_CASE("MindFormers: widths, memory texts and dtypes", "[mindformers]") {
  using namespace formats;
  using formats::mindformers::derived_width;
  // 4 x 4096 = 16384, 2/3 -> 10922, up to 256 x 43 = 11008 (Llama-2-7B).
  CHECK(derived_width(4096, 0, 256) == 11008);
  // floor(1.31 x 32768) = 42926, 2/3 -> 28617, up to 256 x 112 = 28672 (Llama-3-70B).
  CHECK(derived_width(8192, 1.3, 256) == 28672);
  CHECK(parse_memory("58GB")->value == 58.0 * 1073741824.0);
  CHECK(parse_memory(" 1.5 gib ")->value == 1.5 * 1073741824.0);
  CHECK(parse_memory("512MB")->value == 512.0 * 1048576.0);
  CHECK(parse_memory("7B")->value == 7.0);
  for (const char* text : {"58", "GB", "", "-1GB", "0GB", "58XB", "5 8GB", "58GBs"}) {
    INFO(text);
    CHECK_FALSE(parse_memory(text));
  }
  CHECK(dtype_bytes("bfloat16") == std::optional<double>(2.0));
  CHECK(dtype_bytes("float32") == std::optional<double>(4.0));
  CHECK(dtype_bytes("float8_e4m3") == std::optional<double>(1.0));
  CHECK_FALSE(dtype_bytes("float"));
  CHECK_FALSE(dtype_bytes("float17"));
}

TEST_CASE("MindFormers: keys nobody prices are noted, not refused", "[mindformers]") {
  const Request request = read_example("llama3_70b.yaml");
  std::vector<std::string> notes;
  for (const auto& one : request.notes) notes.push_back(one.message);
  CHECK(std::find(notes.begin(), notes.end(), "read by nobody, no part of the price: seed, run_mode, use_parallel, output_dir, lr_schedule, micro_batch_interleave_num") !=
        notes.end());
}
