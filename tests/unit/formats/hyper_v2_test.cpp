// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "formats/readers/reader.hpp"
#include "formats/tree/node.hpp"
#include "nd/ops.hpp"
#include "nd/run_spec.hpp"

using namespace nd;
using namespace nd::formats;

namespace {

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

Result<Request> read_path(const std::string& path) {
  return read_document(path).and_then([&](const ConfigNode& root) { return read_hyper_v2(root, path, data()); });
}
Result<Request> read_text(const std::string& text) {
  const std::string path = ND_TEST_DATA_DIR "/examples/hyper_v2/text.yaml";
  return parse_yaml(text, path).and_then([&](const ConfigNode& root) { return read_hyper_v2(root, path, data()); });
}

struct Resolved {
  Request request;
  ResolvedModel model;
  ResolvedRun run;
};

Resolved example(const std::string& name) {
  const auto request = read_path(ND_TEST_DATA_DIR "/examples/hyper_v2/" + name);
  if (!request) FAIL(to_text(request.error().diagnostics.front()));
  const auto model = resolve_model(request->model);
  REQUIRE(model);
  FrameworkProfile profile;
  profile.can.style = DataParallelStyle::fsdp2;
  const auto run = resolve_run(request->run, *model, profile);
  if (!run) FAIL(to_text(run.error().diagnostics.front()));
  return {*request, *model, *run};
}

/// "line:column path code" of every problem, in order.
std::vector<std::string> problems(const Result<Request>& result) {
  std::vector<std::string> out;
  if (result) return out;
  for (const Diagnostic& one : result.error().diagnostics)
    out.push_back(std::to_string(one.where.line) + ":" + std::to_string(one.where.column) + " " + one.where.path + " " + to_text(one.code));
  return out;
}
std::vector<std::string> invalid(const std::string& name) { return problems(read_path(ND_TEST_SOURCE_DIR "/tests/unit/formats/invalid/" + name)); }

bool has_note(const Request& request, Severity severity, std::string_view part) {
  return std::any_of(request.notes.begin(), request.notes.end(), [&](const Diagnostic& note) {
    return note.severity == severity && note.message.find(part) != std::string::npos;
  });
}

/// A dense model that needs no file.
const std::string kModel =
    "model: {config_overrides: {num_hidden_layers: 8, hidden_size: 64, num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}}\n";

}  // namespace

TEST_CASE("the dense AutoModels example", "[formats][hyper_v2]") {
  const auto [request, model, run] = example("llama31_8b_train.yaml");
  CHECK(count_parameters(model).total == 8030261248);
  const ParallelConfig& s = run.strategy;
  CHECK(run.devices == 32);
  CHECK(s.dp == 16);
  CHECK(s.tp == 2);
  CHECK(s.pp * s.cp * s.ep * s.vpp == 1);
  CHECK(s.op == 8);  // dp_shard_size; two replicas of it
  CHECK(s.zero == ZeroLevel::parameters);
  CHECK(s.micro_batch_size == 1);
  CHECK(s.micro_batch_num == 8);
  CHECK(run.global_batch_size == 128);
  CHECK(run.seq_length == 8192);
  CHECK(s.sequence_parallel);
  CHECK(s.recompute == Recompute::selective);
  CHECK(run.optimizer == OptimizerKind::adamw_bf16_states);  // two states, as wide as the stored parameters
  CHECK(request.run.param_bytes == 2.0);
  CHECK(run.compute_dtype == Dtype::bf16);
  CHECK(run.device_memory.value == 64.0 * 1024 * 1024 * 1024);
  CHECK(request.run.framework == "hyperparallel");
}

TEST_CASE("the MoE AutoModels example", "[formats][hyper_v2]") {
  const auto [request, model, run] = example("qwen3_30b_a3b_train.yaml");
  CHECK(count_parameters(model).total == 30532122624);
  const ParallelConfig& s = run.strategy;
  CHECK(run.devices == 16);
  CHECK(s.dp == 4);
  CHECK(s.tp == 2);
  CHECK(s.cp == 2);
  CHECK(s.ep == 8);
  CHECK(s.etp == 1);
  CHECK(s.op == 8);
  CHECK(s.expert_dp() == 2);
  CHECK(s.micro_batch_num == 16);
  CHECK(run.global_batch_size == 64);
  CHECK(run.seq_length == 4096);
  CHECK(s.cp_algorithm == CpAlgorithm::ulysses);
  CHECK(s.recompute == Recompute::full);
  CHECK(run.optimizer == OptimizerKind::muon);
  CHECK(request.run.param_bytes == 2.0);
  CHECK(run.device_memory.value == 58.0 * 1024 * 1024 * 1024);
  const Origin origin = request.run.origins.at("ep");
  CHECK(origin.kind == Origin::Kind::file);
  CHECK(origin.where.line == 24);
  CHECK(origin.where.path == "accelerator.ep_size");
}

TEST_CASE("the legacy example", "[formats][hyper_v2]") {
  const auto [request, model, run] = example("deepseek_v3_legacy_train.yaml");
  const ParameterCount count = count_parameters(model);
  CHECK(count.total == 671026419200);
  CHECK(count.total + count.mtp == 682636487424);
  const ParallelConfig& s = run.strategy;
  CHECK(run.devices == 1024);
  CHECK(s.dp == 16);
  CHECK(s.tp == 4);
  CHECK(s.pp == 16);
  CHECK(s.ep == 8);
  CHECK(s.op == 4);
  CHECK(s.zero == ZeroLevel::optimizer);
  CHECK(s.micro_batch_num == 32);
  CHECK(run.global_batch_size == 512);
  CHECK(run.seq_length == 4096);
  CHECK(s.sequence_parallel);
  CHECK(s.recompute == Recompute::full);
  // 62 / 16 = 3 layers and MTP blocks a stage, plus the offsets; the last of the 62 is the MTP block
  CHECK(run.layers_per_chunk == std::vector<std::vector<std::int64_t>>{{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}});
  CHECK(run.capacity_factor == 1.5);
  CHECK(request.run.param_bytes == 4.0);
  CHECK(request.run.softmax_bytes == 4.0);
  CHECK(run.compute_dtype == Dtype::bf16);
  CHECK(run.device_memory.value == 58.0 * 1024 * 1024 * 1024);
}

TEST_CASE("the hybrid example trains neither MTP block nor tower", "[formats][hyper_v2]") {
  const auto [request, model, run] = example("qwen3_6_35b_a3b_train.yaml");
  const ParameterCount count = count_parameters(model);
  CHECK(count.total == 34660610688);
  CHECK(count.mtp == 0);
  CHECK(std::count_if(model.layer_kind.begin(), model.layer_kind.end(), [&kinds = model.kinds](int kind) {
          return kinds[static_cast<std::size_t>(kind)].attention.kind == AttentionKind::gated_delta;
        }) == 30);
  CHECK(run.strategy.dp == 16);
  CHECK(run.strategy.ep == 8);
  CHECK(run.strategy.op == 16);
  CHECK(run.strategy.micro_batch_num == 1);
  CHECK(run.strategy.recompute == Recompute::off);  // a bare off, which YAML reads as false
  CHECK(has_note(request, Severity::note, "MTP"));
  CHECK(has_note(request, Severity::note, "vision_config"));
}

TEST_CASE("files with mistakes are refused where they are", "[formats][hyper_v2]") {
  using Places = std::vector<std::string>;
  CHECK(invalid("hyper_bad_ac_mode.yaml") == Places{"4:31 activation_checkpoint.mode out_of_range"});
  CHECK(invalid("hyper_device_num.yaml") == Places{"7:23 context.device_num conflict"});
  CHECK(invalid("hyper_kv_heads.yaml") == Places{"3:106 model.config_overrides.num_key_value_heads conflict"});
  CHECK(invalid("hyper_no_model.yaml") == Places{"2:8 model missing_field"});
  CHECK(invalid("hyper_unknown_override.yaml") ==
        Places{"3:61 model.config_overrides.num_attn_heads unknown_key", "3:21 model.config_overrides.num_attention_heads missing_field"});
  CHECK(invalid("not_a_mapping.yaml") == Places{"1:1  wrong_type"});
}

TEST_CASE("several mistakes are reported together", "[formats][hyper_v2]") {
  const auto found = problems(read_text(kModel +
                                        "accelerator: {tp_size: two, pp_size: 0, pipeline_scheduler: sideways, context_parallel_algo: magic}\n"
                                        "context: {max_device_memory: plenty}\n"
                                        "fsdp_config: {mix_precision: {param_dtype: thin}}\n"));
  CHECK(found == std::vector<std::string>{"2:24 accelerator.tp_size wrong_type", "2:38 accelerator.pp_size out_of_range",
                                          "2:61 accelerator.pipeline_scheduler unsupported", "2:94 accelerator.context_parallel_algo unsupported",
                                          "4:44 fsdp_config.mix_precision.param_dtype out_of_range", "3:30 context.max_device_memory out_of_range"});
}

TEST_CASE("defaults that change the price are said", "[formats][hyper_v2]") {
  const auto request = read_text(kModel + "accelerator: {tp_size: 2, cp_size: 2}\nfsdp_config: {dp_shard_size: 8}\n");
  REQUIRE(request);
  CHECK(request->run.dp == 4);  // the shard group of 8 ranks covers dp x cp
  CHECK(request->run.seq_length == 4096);
  CHECK(request->run.micro_batch_num == 1);
  CHECK(has_note(*request, Severity::warning, "sequence length"));
  CHECK(has_note(*request, Severity::warning, "no batch"));
  CHECK(has_note(*request, Severity::warning, "colossalai_cp"));
  CHECK(has_note(*request, Severity::warning, "no optimizer"));
  CHECK(has_note(*request, Severity::warning, "one replica"));
  CHECK(has_note(*request, Severity::note, "default family"));
  CHECK(problems(read_text(kModel + "accelerator: {cp_size: 3}\nfsdp_config: {dp_shard_size: 8}\n")) ==
        std::vector<std::string>{"3:30 fsdp_config.dp_shard_size conflict"});
}

TEST_CASE("optimizer, sharding and experts as the trainer reads them", "[formats][hyper_v2]") {
  const auto run_of = [](const std::string& rest) {
    const auto request = read_text(kModel + rest);
    REQUIRE(request);
    return request->run;
  };
  const std::string bf16 = "model_init_dtype: bfloat16\ntraining: {global_batch_size: 8}\n";
  CHECK(run_of(bf16 + "optimizer: {type: adamw, fp32_main_params: true}\n").optimizer == OptimizerKind::adamw);
  CHECK(run_of(bf16 + "optimizer: {type: adamw}\n").optimizer == OptimizerKind::adamw_bf16_states);
  CHECK(run_of("training: {global_batch_size: 8}\noptimizer: {type: adamw}\n").optimizer == OptimizerKind::adamw);  // stored in fp32
  CHECK(run_of(bf16 + "optimizer: {_target_: x.y.SGD}\n").optimizer == OptimizerKind::sgd);
  CHECK(run_of(bf16 + "fsdp_config: {dp_shard_size: 4, reshard_after_forward: false}\n").zero == ZeroLevel::gradients);
  CHECK(run_of(bf16 + "fsdp_config: {dp_shard_size: 1}\n").zero == ZeroLevel::none);
  const std::string legacy = "train: {global_batch_size: 8, accelerator: {dp_shard: 2, dp_replicate: 4, ";
  CHECK(run_of(legacy + "enable_parallel_optimizer: false}}\n").zero == ZeroLevel::none);
  CHECK(run_of(legacy + "gradient_accumulation_shard: true}}\n").zero == ZeroLevel::gradients);
  CHECK(run_of(legacy + "tp_degree: 2}}\n").dp == 8);
  CHECK(problems(read_text(kModel + "accelerator: {ep_size: 2}\nfsdp_config: {edp_shard_size: 3}\ncontext: {device_num: 8}\n")) ==
        std::vector<std::string>{"3:31 fsdp_config.edp_shard_size conflict"});  // an expert group has 8 / 2 ranks
}

TEST_CASE("recompute per layer becomes counts per stage", "[formats][hyper_v2]") {
  const auto request = read_text(kModel +
                                 "accelerator: {pp_size: 2}\n"
                                 "activation_checkpoint: {mode: selective, layers: {\"0-2\": full, \"7\": off}}\n");
  REQUIRE(request);
  CHECK(request->run.full_recompute_layers == std::vector<std::int64_t>{3, 0});       // layers 0 to 2 of 0 to 3
  CHECK(request->run.selective_recompute_layers == std::vector<std::int64_t>{1, 3});  // 3; 4, 5, 6
  CHECK(problems(read_text(kModel + "accelerator: {pp_size: 2}\nactivation_checkpoint: {mode: full, layers: {\"5-8\": off}}\n")).size() == 1);
}

TEST_CASE("misspelt sections and keys do not pass for defaults", "[formats][hyper_v2]") {
  CHECK(problems(read_text(kModel + "acelerator: {tp_size: 2}\n")) == std::vector<std::string>{"2:1 acelerator unknown_key"});
  CHECK(problems(read_text(kModel + "training: {global_batch_sise: 2}\n")) == std::vector<std::string>{"2:12 training.global_batch_sise unknown_key"});
  const auto request = read_text(kModel + "profiler: {on: true}\n");
  REQUIRE(request);
  CHECK(has_note(*request, Severity::note, "profiler"));
}

TEST_CASE("a checkpoint that cannot be read", "[formats][hyper_v2]") {
  const auto alone = problems(read_text("model: {pretrained_model_name_or_path: ../nowhere}\n"));
  CHECK(alone == std::vector<std::string>{"1:40 model.pretrained_model_name_or_path io"});
  const auto with = read_text("model:\n  pretrained_model_name_or_path: ../nowhere\n  config_overrides: {num_hidden_layers: 8, hidden_size: 64, "
                              "num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}\n");
  REQUIRE(with);
  CHECK(has_note(*with, Severity::warning, "only config_overrides"));
  // Overrides win over the checkpoint, field by field.
  const auto cropped = read_text("model:\n  pretrained_model_name_or_path: ../../models/llama-3.1-8b\n  config_overrides: {num_hidden_layers: 4}\n");
  REQUIRE(cropped);
  CHECK(cropped->model.num_hidden_layers == 4);
  CHECK(cropped->model.hidden_size == 4096);
  const auto bare = read_text("model: {pretrained_model_name_or_path: ../../models/llama-3.1-8b, num_hidden_layers: 6}\n");
  REQUIRE(bare);
  CHECK(bare->model.num_hidden_layers == 6);
}
