// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "formats/readers/reader.hpp"
#include "formats/readers/torchtitan_stages.hpp"
#include "nd/formats.hpp"
#include "nd/ops.hpp"

using namespace nd;
using namespace nd::formats;

namespace {

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

Result<Request> read_text(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) {
  return parse_toml(text, "f.toml").and_then([&](const ConfigNode& root) { return read_torchtitan(root, "f.toml", data(), {.devices = devices}); });
}

Request good(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) {
  auto request = read_text(text, devices);
  if (!request) FAIL(to_text(request.error().diagnostics.front()));
  return *std::move(request);
}

/// "line:column path: message" of every problem.
std::string problems(const Result<Request>& result) {
  std::string out;
  if (result) return out;
  for (const auto& one : result.error().diagnostics)
    out += std::to_string(one.where.line) + ":" + std::to_string(one.where.column) + " " + one.where.path + ": " + one.message + " (" + one.hint + ")\n";
  return out;
}

bool said(const Request& request, Severity severity, std::string_view part) {
  return std::any_of(request.notes.begin(), request.notes.end(),
                     [&](const Diagnostic& one) { return one.severity == severity && one.message.find(part) != std::string::npos; });
}

const std::string kModel = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
const std::string kTraining = "[training]\nlocal_batch_size = 8\nseq_len = 4096\n";

}  // namespace

TEST_CASE("TorchTitan: every flavor is a model, with the published totals", "[torchtitan]") {
  const auto table = read_document(ND_TEST_DATA_DIR "/flavors/torchtitan.yaml");
  REQUIRE(table);
  // Published parameter counts (checkpoint headers without MTP).
  const std::map<std::string, std::int64_t> totals{{"llama3-8B", 8030261248},           {"llama3-70B", 70553706496},       {"llama3-405B", 405853388800},
                                                   {"deepseek_v3-671B", 671026419200},  {"qwen3-8B", 8190735360},          {"qwen3-32B", 32762123264},
                                                   {"qwen3-30B-A3B", 30532122624},      {"qwen3-235B-A22B", 235093634560}, {"gpt_oss-20b", 20914757184},
                                                   {"gpt_oss-120b", 116829156672},      {"llama4-17bx128e", 400711848960}, {"llama4-17bx16e", 107769861120}};
  std::size_t found = 0, flavors = 0;
  for (const auto& [model, family] : table->find("models")->members)
    for (const auto& [flavor, facts] : family.find("flavors")->members) {
      const auto request = good("[model]\nname = \"" + model + "\"\nflavor = \"" + flavor + "\"\n[training]\nseq_len = 2048\n", 8);
      const auto resolved = resolve_model(request.model);
      INFO(model << " " << flavor);
      REQUIRE(resolved);
      CHECK(resolved->mtp_depth == 0);
      ++flavors;
      const auto total = totals.find(model + "-" + flavor);
      if (total == totals.end()) continue;
      CHECK(count_parameters(*resolved).total == total->second);
      ++found;
    }
  CHECK(found == totals.size());
  CHECK(flavors >= 18);
}

TEST_CASE("TorchTitan: shards of -1 are all that the other degrees leave", "[torchtitan]") {
  const std::string text = kModel + kTraining + "[parallelism]\ntensor_parallel_degree = 2\ndata_parallel_replicate_degree = 2\n";
  const auto run = good(text, 64).run;
  CHECK(run.devices == 64);
  CHECK(run.dp == 32);               // 64 / 2
  CHECK(run.optimizer_shard == 16);  // 64 / (2 replicas x tp 2)
  CHECK(run.zero == ZeroLevel::parameters);
  CHECK(run.global_batch_size == 8 * 32);
  CHECK(problems(read_text(text, 62)).find("62 devices are no multiple of replicas x tp x pp x cp = 4") != std::string::npos);
  CHECK(problems(read_text(text)).find("how many ranks share a replica follows from the number of devices (-d N)") != std::string::npos);
  // One replica needs no number: all ranks share.
  const auto open = good(kModel + kTraining).run;
  CHECK_FALSE(open.devices);
  CHECK_FALSE(open.optimizer_shard);
  CHECK(open.zero == ZeroLevel::parameters);
}

TEST_CASE("TorchTitan: stated degrees must multiply to the devices", "[torchtitan]") {
  const auto bad = read_document(ND_TEST_SOURCE_DIR "/tests/unit/formats/invalid/titan_bad_world.toml");
  REQUIRE(bad);
  const auto refused = problems(read_torchtitan(*bad, "f", data(), {.devices = 16}));
  CHECK(refused.find("10:30 parallelism.data_parallel_shard_degree: the degrees multiply to 24, the run has 16 devices") == 0);
  CHECK(read_torchtitan(*bad, "f", data(), {.devices = 24}));
}

TEST_CASE("TorchTitan: unknown models and flavors list the known ones", "[torchtitan]") {
  const auto bad = read_document(ND_TEST_SOURCE_DIR "/tests/unit/formats/invalid/titan_unknown_flavor.toml");
  REQUIRE(bad);
  const auto refused = problems(read_torchtitan(*bad, "f", data()));
  CHECK(refused.find("3:10 model.flavor: llama3 has no flavor '9B'") == 0);
  CHECK(refused.find("8B") != std::string::npos);
  CHECK(problems(read_text("[model]\nname = \"lama3\"\nflavor = \"8B\"\n")).find("did you mean 'llama3'?") != std::string::npos);
  CHECK(problems(read_text("[training]\nseq_len = 1\n")).find("'name' is required") != std::string::npos);
  // Its own table replaces or completes a flavor.
  const auto own = good("[model]\nname = \"mine\"\nflavor = \"1B\"\n[nd.model]\nmodel_type = \"llama\"\nhidden_size = 64\nnum_hidden_layers = 2\nnum_attention_heads = 4\n"
                        "intermediate_size = 128\nvocab_size = 1000\n", 8);
  CHECK(own.model.hidden_size == 64);
  CHECK(good(kModel + "[nd.model]\nnum_hidden_layers = 4\n", 8).model.num_hidden_layers == 4);
  CHECK(problems(read_text(kModel + "[nd.model]\nlayers = 4\n")).find("unknown key 'layers'") != std::string::npos);
}

TEST_CASE("TorchTitan: the batch with and without a pipeline", "[torchtitan]") {
  const auto flat = good(kModel + "[training]\nlocal_batch_size = 2\nglobal_batch_size = 64\nseq_len = 4096\n", 8).run;
  CHECK(flat.micro_batch_size == 2);
  CHECK(flat.micro_batch_num == 4);  // 64 / (2 x 8)
  const auto staged = good(kModel + "[training]\nlocal_batch_size = 8\nglobal_batch_size = 64\nseq_len = 4096\n[parallelism]\npipeline_parallel_degree = 2\n"
                                    "pipeline_parallel_microbatch_size = 2\n", 8);
  CHECK(staged.run.micro_batch_size == 2);
  CHECK(staged.run.micro_batch_num == 8);  // 4 a round, two rounds
  CHECK(said(staged, Severity::warning, "accumulation steps are priced as further micro-batches"));
  CHECK(problems(read_text(kModel + "[training]\nlocal_batch_size = 3\nglobal_batch_size = 64\n", 8)).find("64 is no multiple of local batch x data-parallel ranks = 24") != std::string::npos);
  CHECK(problems(read_text(kModel + "[training]\nlocal_batch_size = 3\n[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 2\n", 8))
            .find("does not divide the local batch of 3") != std::string::npos);
  const auto silent = good(kModel, 8);
  CHECK(silent.run.micro_batch_size == 8);
  CHECK(silent.run.seq_length == 2048);
  CHECK(said(silent, Severity::note, "is not stated: 8, the trainer's own default"));
  CHECK(said(silent, Severity::note, "is not stated: 2048, the trainer's own default"));
}

TEST_CASE("TorchTitan: stages by the trainer's rule", "[torchtitan]") {
  torchtitan::StageRequest request;
  request.layers = 32;
  request.pp = 4;
  std::string why;
  // 34 units over 4 stages: 9 9 8 8, the ends give up one each.
  CHECK(torchtitan::split_stages(request, why) == std::vector<std::int64_t>{8, 9, 8, 7});
  request.schedule = *torchtitan::find_schedule_word("interleaved1f1b");
  request.layers_per_stage = 3;  // ceil(34 / 3) = 12 = 3 x 4
  CHECK(torchtitan::split_stages(request, why) == std::vector<std::int64_t>{2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 1});
  request.layers_per_stage = 5;  // ceil(34 / 5) = 7
  CHECK(torchtitan::split_stages(request, why).empty());
  CHECK(why == "7 virtual stages are no multiple of pp 4");
  request.layers_per_stage = 9;
  CHECK(torchtitan::split_stages(request, why).empty());
  CHECK(why == "4 virtual stages, but the schedule runs two or more per rank");
  request = {};
  request.layers = 2;
  request.pp = 8;
  CHECK(torchtitan::split_stages(request, why).empty());
  // Round and round.
  const std::vector<std::int64_t> stages{1, 2, 3, 4};
  CHECK(torchtitan::per_chunk(stages, 2) == std::vector<std::vector<std::int64_t>>{{1, 2}, {3, 4}});
  CHECK(torchtitan::in_model_order(torchtitan::per_chunk(stages, 2)) == stages);
}

TEST_CASE("TorchTitan: schedules and explicit parts", "[torchtitan]") {
  const auto with = [](const std::string& more) {
    return read_text(kModel + kTraining + "[parallelism]\npipeline_parallel_degree = 4\n" + more, 16);
  };
  CHECK(with("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n")->run.schedule == Schedule::zb_v);
  CHECK(with("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n")->run.vpp == 2);
  CHECK(with("pipeline_parallel_schedule = \"GPipe\"\n")->run.schedule == Schedule::gpipe);
  CHECK(said(*with("pipeline_parallel_schedule = \"InterleavedZeroBubble\"\n"), Severity::warning, "priced as Interleaved1F1B"));
  CHECK(problems(with("pipeline_parallel_schedule = \"1F1C\"\n")).find("unknown schedule '1F1C' (did you mean '1F1B'?)") != std::string::npos);
  std::string parts = "module_fqns_per_model_part = [";
  for (int stage = 0; stage < 4; ++stage) {
    parts += "[";
    for (int layer = stage * 8; layer < stage * 8 + 8; ++layer) parts += "\"layers." + std::to_string(layer) + "\",";
    parts += "],";
  }
  CHECK(with(parts + "]\n")->run.layers_per_chunk == std::vector<std::vector<std::int64_t>>{{8, 8, 8, 8}});
  CHECK(problems(with("module_fqns_per_model_part = [[\"layers.0\"],[],[],[]]\n")).find("the parts hold 1 layers, the model has 32") != std::string::npos);
}

TEST_CASE("TorchTitan: activation checkpointing", "[torchtitan]") {
  const auto with = [](const std::string& more) { return good(kModel + kTraining + "[activation_checkpoint]\n" + more, 8).run; };
  CHECK(with("mode = \"none\"\n").recompute == Recompute::off);
  CHECK(with("mode = \"full\"\n").recompute == Recompute::full);
  CHECK(with("mode = \"selective\"\nselective_ac_option = \"op\"\n").recompute == Recompute::selective);
  // Every third of 32 layers.
  CHECK(with("mode = \"selective\"\nselective_ac_option = \"3\"\n").full_recompute_layers == std::vector<std::int64_t>{10});
  CHECK(with("mode = \"selective\"\nselective_ac_option = \"1\"\n").full_recompute_layers.empty());
  CHECK(with("").full_recompute_layers == std::vector<std::int64_t>{16});  // the trainer's default: every second
  CHECK(problems(read_text(kModel + "[activation_checkpoint]\nmode = \"fll\"\n", 8)).find("'fll' is not none, selective, full or memory_budget") != std::string::npos);
  CHECK(said(good(kModel + kTraining + "[activation_checkpoint]\nmode = \"memory_budget\"\n", 8), Severity::warning, "priced as selective"));
}

TEST_CASE("TorchTitan: features, precisions and what is not priced", "[torchtitan]") {
  CHECK(good(kModel + kTraining, 8).run.framework_version == "eager");
  CHECK(good(kModel + kTraining + "[compile]\nenable = true\n", 8).run.framework_version == "compiled");
  CHECK(good(kModel + kTraining + "[compile]\nenable = true\ncomponents = [\"loss\"]\n", 8).run.framework_version == "eager");
  const auto fp8 = good("[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"quantize.linear.float8\"]\n" + kTraining, 8);
  CHECK(fp8.run.gemm_dtype == Dtype::fp8);
  CHECK(fp8.run.compute_dtype == Dtype::bf16);
  const auto offload = good(kModel + kTraining + "enable_cpu_offload = true\ndtype = \"bfloat16\"\n", 8);
  CHECK(said(offload, Severity::warning, "not priced"));
  CHECK(offload.run.param_bytes == 2.0);
  const auto tp = good(kModel + kTraining + "[parallelism]\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true\ncontext_parallel_rotate_method = \"alltoall\"\n", 8).run;
  CHECK(tp.features == std::vector<std::string>{"async_tp"});
  CHECK(tp.sequence_parallel == true);
  CHECK(tp.cp_algorithm == CpAlgorithm::ring);
  CHECK(good(kModel + kTraining + "[parallelism]\nfsdp_reshard_after_forward = \"never\"\n", 8).run.zero == ZeroLevel::gradients);
  CHECK(good(kModel + kTraining + "[parallelism]\npipeline_parallel_degree = 2\n", 8).run.zero == ZeroLevel::gradients);  // "default" beside a pipeline
}

TEST_CASE("TorchTitan: the sections of older versions", "[torchtitan]") {
  const auto run = good(kModel + "[training]\nbatch_size = 4\nseq_len = 8192\ntensor_parallel_degree = 2\ndata_parallel_shard_degree = 4\ncompile = true\n"
                                 "[experimental]\npipeline_parallel_degree = 2\npipeline_parallel_microbatches = 4\n", 16).run;
  CHECK(run.tp == 2);
  CHECK(run.pp == 2);
  CHECK(run.dp == 4);
  CHECK(run.micro_batch_size == 1);
  CHECK(run.micro_batch_num == 4);
  CHECK(run.framework_version == "compiled");
}

TEST_CASE("TorchTitan: everything wrong with a file comes at once, in its order", "[torchtitan]") {
  const auto text = problems(read_text("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 0\ndtype = \"half\"\n[parallelism]\ntensor_parallel_degree = -2\n"
                                       "expert_tensor_parallel_degree = 2\nexpert_parallel_degree = 2\n[activation_checkpoint]\nmode = 3\n", 8));
  std::size_t at = 0;
  for (const char* const part : {"5:11 training.seq_len", "6:9 training.dtype", "8:26 parallelism.tensor_parallel_degree", "9:33 parallelism.expert_tensor_parallel_degree", "12:8 activation_checkpoint.mode"}) {
    const auto found = text.find(part, at);
    INFO(text << "\n" << part);
    REQUIRE(found != std::string::npos);
    at = found;
  }
}

TEST_CASE("TorchTitan: a Python function is no file", "[torchtitan]") {
  const auto refused = read_request("torchtitan.models.llama3:llama3_8b", "", data());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().diagnostics.front().message.find("names a Python function of a module") != std::string::npos);
}
