// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data_support.hpp"
#include "nd/data_store.hpp"
#include "nd/formats.hpp"
#include "nd/ops.hpp"
#include "nd/run_spec.hpp"
#include "nd/search_space.hpp"
#include "nd/units.hpp"

// tests/data/expected_specs.json: what each example file says, worked out by hand from the formats' definitions (field by field,
// with the published parameter totals); the readers must come to the same.

namespace nd::test {
namespace {

using Json = nlohmann::json;

const std::string kExamples = ND_TEST_DATA_DIR "/examples/";

Json expected() {
  std::ifstream in(ND_TEST_SOURCE_DIR "/tests/data/expected_specs.json");
  return Json::parse(in);
}

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

/// Devices for files that leave them to the command line.
std::optional<std::int64_t> devices_for(const Json& run) {
  if (!run.contains("devices")) return std::nullopt;
  if (run["devices"].is_number()) return run["devices"].get<std::int64_t>();
  return 32;  // "from -d; 32 gives dp ..."
}

RequestFiles files_of(const std::string& name) {
  RequestFiles files;
  files.main = kExamples + name;
  if (std::filesystem::is_directory(files.main)) {
    files.train = files.main + "/train.yaml";
    files.accelerate = files.main + "/accelerate.yaml";
    files.main += "/model.yaml";
    files.format = "hyperparallel2";
  }
  return files;
}

struct Read {
  Request request;
  ResolvedModel model;
  ResolvedRun run;
};

Read read(const std::string& name, const std::optional<std::int64_t>& devices) {
  INFO(name);
  const auto request = read_request(files_of(name), data(), {.devices = devices});
  INFO(problems(request));
  REQUIRE(request);
  const auto model = resolve_model(request->model);
  INFO(problems(model));
  REQUIRE(model);
  RunSpec spec = request->run;
  if (devices) spec.devices = devices;
  const auto profile = data().framework(spec.framework, spec.framework_version, spec.features);
  INFO(problems(profile));
  REQUIRE(profile);
  const auto run = resolve_run(spec, *model, *profile);
  INFO(problems(run));
  REQUIRE(run);
  return {*request, *model, *run};
}

const FfnSpec* ffn(const ResolvedModel& model, FfnKind kind) {
  for (const auto& one : model.kinds)
    if (one.ffn.kind == kind) return &one.ffn;
  return nullptr;
}

const AttentionSpec& attention(const ResolvedModel& model) {
  for (const auto& kind : model.kinds)
    if (kind.attention.kind == AttentionKind::softmax || kind.attention.kind == AttentionKind::mla) return kind.attention;
  return model.kinds.front().attention;
}

void check_model(const Json& wanted, const Read& got) {
  const ModelSpec& spec = got.request.model;
  const auto number = [&wanted](const char* key) { return wanted.contains(key) ? std::optional(wanted[key].get<std::int64_t>()) : std::nullopt; };
  const auto same = [&](const char* key, std::int64_t value) {
    INFO(key);
    if (const auto one = number(key)) CHECK(*one == value);
  };
  same("hidden_size", got.model.hidden_size);
  same("num_layers", got.model.layers());
  same("num_heads", attention(got.model).heads);
  same("num_kv_heads", attention(got.model).kv_heads);
  same("vocab_size", got.model.vocab_size);
  if (attention(got.model).kind == AttentionKind::softmax) same("head_dim", attention(got.model).qk_dim);
  same("q_lora_rank", attention(got.model).q_lora_rank);
  same("kv_lora_rank", attention(got.model).kv_lora_rank);
  same("qk_nope_head_dim", attention(got.model).nope_dim);
  same("qk_rope_head_dim", attention(got.model).rope_dim);
  if (wanted.contains("kv_lora_rank")) same("v_head_dim", attention(got.model).v_dim);
  if (wanted.contains("qk_norm")) CHECK(attention(got.model).qk_norm == wanted["qk_norm"].get<bool>());
  same("mtp_depth", got.model.mtp_depth);
  same("first_k_dense", spec.first_k_dense_replace.value_or(0));
  if (const auto* dense = ffn(got.model, FfnKind::dense)) same("ffn_size", dense->width);
  if (const auto* moe = ffn(got.model, FfnKind::moe)) {
    same("num_experts", moe->experts);
    same("top_k", moe->experts_per_token);
    same("moe_ffn_size", moe->expert_width);
    same("num_shared_experts", moe->shared_experts);
  } else {
    CHECK_FALSE(wanted.contains("num_experts"));
  }
}

std::vector<std::int64_t> per_stage(const std::vector<std::vector<std::int64_t>>& chunks) {
  std::vector<std::int64_t> out(chunks.empty() ? 0 : chunks.front().size(), 0);
  for (const auto& chunk : chunks)
    for (std::size_t i = 0; i < chunk.size(); ++i) out[i] += chunk[i];
  return out;
}

void check_layout(const Json& wanted, const Read& got) {
  const auto& chunks = got.run.layers_per_chunk;
  if (wanted.contains("layers_per_stage") && wanted["layers_per_stage"].is_array()) {
    const auto stages = wanted["layers_per_stage"].get<std::vector<std::int64_t>>();
    const bool even = std::adjacent_find(stages.begin(), stages.end(), std::not_equal_to<>()) == stages.end();
    auto counted = per_stage(chunks);
    // The figures count MTP blocks among the layers of the last stage.
    if (!counted.empty() && std::accumulate(stages.begin(), stages.end(), std::int64_t{0}) > got.model.layers()) counted.back() += got.model.mtp_depth;
    if (!chunks.empty() || !even) CHECK(counted == stages);
  }
  if (wanted.contains("layers_per_chunk") && !chunks.empty()) CHECK(chunks == wanted["layers_per_chunk"].get<std::vector<std::vector<std::int64_t>>>());
  if (wanted.contains("layers_per_virtual_stage")) {
    std::vector<std::int64_t> order;  // looped: chunk by chunk, stage by stage
    for (const auto& chunk : chunks) order.insert(order.end(), chunk.begin(), chunk.end());
    CHECK(order == wanted["layers_per_virtual_stage"].get<std::vector<std::int64_t>>());
  }
}

void check_recompute(const Json& wanted, const Read& got) {
  const Recompute mode = got.run.strategy.recompute;
  if (wanted.contains("activation_checkpoint")) CHECK(wanted["activation_checkpoint"] == to_text(mode));
  if (wanted.contains("full_recompute")) {
    const Json& full = wanted["full_recompute"];
    if (full.is_boolean()) CHECK((mode == Recompute::full) == full.get<bool>());
    if (full.is_array() && full.front().is_number()) CHECK(got.run.full_recompute_layers == full.get<std::vector<std::int64_t>>());
    if (full.is_array() && full.front().is_array())
      CHECK(got.run.full_recompute_layers == per_stage(full.get<std::vector<std::vector<std::int64_t>>>()));
  }
  if (wanted.contains("selective_recompute") && wanted["selective_recompute"].front().is_number())
    CHECK(got.run.selective_recompute_layers == wanted["selective_recompute"].get<std::vector<std::int64_t>>());
}

void check_numbers(const Json& wanted, const Read& got) {
  const ParallelConfig& s = got.run.strategy;
  const auto same = [&](const char* key, std::int64_t value) {
    INFO(key);
    if (wanted.contains(key) && wanted[key].is_number()) CHECK(wanted[key].get<std::int64_t>() == value);
  };
  same("devices", got.run.devices);
  same("dp", s.dp);
  same("tp", s.tp);
  same("pp", s.pp);
  same("cp", s.cp);
  same("ep", s.ep);
  same("etp", s.etp);
  same("vpp", s.vpp);
  same("micro_batch_size", s.micro_batch_size);
  same("global_batch", got.run.global_batch_size);
  same("seq_length", got.run.seq_length);
  const std::int64_t rounds = wanted.value("grad_accumulation", std::int64_t{1});
  if (wanted.contains("micro_batch_num")) CHECK(wanted["micro_batch_num"].get<std::int64_t>() * rounds == s.micro_batch_num);
  // HyperParallel's shards span context parallelism, torchtitan's are multiplied by it.
  if (wanted.contains("dp_shard")) CHECK(wanted["dp_shard"].get<std::int64_t>() * (got.request.format == "torchtitan" ? s.cp : 1) == s.op);
  if (wanted.contains("dp_replicate") && wanted.contains("dp_shard"))
    CHECK(wanted["dp_replicate"].get<std::int64_t>() * s.op == std::int64_t{s.dp} * s.cp);
  same("optimizer_shard", s.op);
  if (wanted.contains("expert_data_parallel") || wanted.contains("expert_fsdp")) {
    const std::int64_t copies = wanted.value("expert_data_parallel", wanted.value("expert_fsdp", std::int64_t{1}) * wanted.value("dp_replicate", std::int64_t{1}));
    CHECK(s.expert_dp() == copies);
  }
  if (wanted.contains("sequence_parallel")) CHECK((s.sequence_parallel || s.tp == 1) == (wanted["sequence_parallel"].get<bool>() || s.tp == 1));
  if (wanted.contains("zero_level")) CHECK(static_cast<int>(s.zero) == wanted["zero_level"].get<int>());
  if (wanted.contains("grad_shard")) CHECK((s.zero >= ZeroLevel::gradients) == wanted["grad_shard"].get<bool>());
  if (wanted.contains("param_bytes")) CHECK(got.request.run.param_bytes.value_or(2) == wanted["param_bytes"].get<double>());
  if (wanted.contains("compute_bytes")) CHECK((got.run.compute_dtype == Dtype::bf16) == (wanted["compute_bytes"].get<int>() == 2));
  if (wanted.contains("softmax_bytes")) CHECK(got.request.run.softmax_bytes.value_or(4) == wanted["softmax_bytes"].get<double>());
  if (wanted.contains("capacity_factor")) CHECK(got.run.capacity_factor == wanted["capacity_factor"].get<double>());
  if (wanted.contains("device_memory")) CHECK(got.run.device_memory.value == std::stod(wanted["device_memory"].get<std::string>()) * kGiB);
  if (wanted.contains("optimizer_states")) CHECK((got.run.optimizer == OptimizerKind::muon) == (wanted["optimizer_states"].get<int>() == 1));
}

bool is_search(const Json& wanted) { return wanted.contains("candidates"); }

}  // namespace

TEST_CASE("Every example says what it was worked out to say", "[formats][examples]") {
  const Json all = expected();
  int checked = 0;
  for (const auto& [name, wanted] : all["valid"].items()) {
    // Launch scripts and argument dumps have tests of their own.
    if (is_search(wanted) || name.starts_with("megatron/") || name.starts_with("mindspeed/")) continue;
    INFO(name);
    const Json& run = wanted["run"];
    const Read got = read(name, devices_for(run));
    check_model(wanted["model"], got);
    CHECK(count_parameters(got.model).total == wanted["parameters"].get<std::int64_t>());
    check_numbers(run, got);
    check_layout(run, got);
    check_recompute(run, got);
    ++checked;
  }
  CHECK(checked == 14);
}

TEST_CASE("Every search config allows what it was worked out to allow", "[formats][examples]") {
  const Json all = expected();
  const std::map<std::string, Dimension> dimensions{{"dp", Dimension::dp}, {"fsdp", Dimension::optimizer_shard}, {"tp", Dimension::tp}, {"pp", Dimension::pp},
                                                    {"cp", Dimension::cp}, {"ep", Dimension::ep}, {"etp", Dimension::etp}, {"micro_batch_num", Dimension::micro_batch_num}};
  int checked = 0;
  for (const auto& [name, wanted] : all["valid"].items()) {
    if (!is_search(wanted)) continue;
    INFO(name);
    const auto request = read_request(RequestFiles{.search = kExamples + name}, data());
    INFO(problems(request));
    REQUIRE(request);
    CHECK(request->search_config);
    CHECK(request->run.devices == wanted["devices"].get<std::int64_t>());
    CHECK(request->run.device_type == wanted["device"].get<std::string>());
    CHECK(request->run.global_batch_size == wanted["global_batch"].get<std::int64_t>());
    CHECK(request->run.device_memory->value == wanted["budget_gb"].get<double>() * kGiB);
    const auto model = resolve_model(request->model);
    REQUIRE(model);
    CHECK(count_parameters(*model).total == wanted["parameters"].get<std::int64_t>());
    const auto values = [&](const std::string& key) -> std::optional<std::vector<std::int64_t>> {
      for (const auto& one : request->candidates)
        if (one.dimension == dimensions.at(key)) return one.values;
      return std::nullopt;
    };
    for (const auto& [key, value] : wanted["fixed"].items()) CHECK(values(key) == std::vector<std::int64_t>{value.get<std::int64_t>()});
    for (const auto& [key, list] : wanted["candidates"].items()) CHECK(values(key) == list.get<std::vector<std::int64_t>>());
    for (const auto& key : wanted.value("auto", Json::array())) CHECK(values(key.get<std::string>()) == std::vector<std::int64_t>{});
    for (const auto& warning : wanted["warnings"]) {
      const auto found = std::count_if(request->notes.begin(), request->notes.end(), [&](const Diagnostic& one) {
        return one.severity == Severity::warning && one.message == warning.get<std::string>();
      });
      CHECK(found == 1);
    }
    ++checked;
  }
  CHECK(checked == 3);
}

}  // namespace nd::test
