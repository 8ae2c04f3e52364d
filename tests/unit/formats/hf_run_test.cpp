// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "formats/readers/reader.hpp"
#include "nd/formats.hpp"

using namespace nd;
using namespace nd::formats;

namespace {

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

using Read = Result<Request> (*)(const ConfigNode&, const std::string&, const DataStore&, const ReadOptions&);

Result<Request> read_with(Read read, const std::string& text, std::optional<std::int64_t> devices = std::nullopt) {
  return parse_yaml(text, "f.yaml").and_then([&](const ConfigNode& root) { return read(root, "f.yaml", data(), {.devices = devices}); });
}
Result<Request> deepspeed(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) { return read_with(read_deepspeed, text, devices); }
Result<Request> accelerate(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) { return read_with(read_accelerate, text, devices); }
Result<Request> trainer(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) { return read_with(read_hf_trainer, text, devices); }

std::string problems(const Result<Request>& result) {
  std::string out;
  if (result) return out;
  for (const auto& one : result.error().diagnostics)
    out += std::to_string(one.where.line) + ":" + std::to_string(one.where.column) + " " + one.where.path + ": " + one.message + "\n";
  return out;
}

RunSpec run_of(const Result<Request>& result) {
  if (!result) FAIL(problems(result));
  return result->run;
}

bool warned(const Result<Request>& result, std::string_view part) {
  return result && std::any_of(result->notes.begin(), result->notes.end(), [&](const Diagnostic& one) {
           return one.severity == Severity::warning && one.message.find(part) != std::string::npos;
         });
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("nd_hf_run_" + std::to_string(::getpid()))) { std::filesystem::create_directories(path_); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("DeepSpeed: stages, shards and engines", "[deepspeed]") {
  for (int stage = 0; stage <= 3; ++stage) {
    const auto run = run_of(deepspeed("{zero_optimization: {stage: " + std::to_string(stage) + "}, bf16: {enabled: true}, train_micro_batch_size_per_gpu: 1}", 8));
    CHECK(static_cast<int>(*run.zero) == stage);
    CHECK(run.dp == 8);
    CHECK(run.compute_dtype == Dtype::bf16);
    CHECK(run.framework == "deepspeed-zero3-2021");
  }
  CHECK(run_of(deepspeed("{zero_optimization: {stage: 3, mics_shard_size: 4}}", 16)).optimizer_shard == 4);
  CHECK(run_of(deepspeed("{fp16: {enabled: true}, zero_optimization: {stage: 1}}", 8)).compute_dtype == Dtype::fp16);
  const auto wide = run_of(deepspeed("{zero_optimization: {stage: 1}}", 8));  // no 16-bit engine
  CHECK(wide.compute_dtype == Dtype::fp32);
  CHECK(wide.param_bytes == 4.0);
  CHECK(problems(deepspeed("{zero_optimization: {stage: 4}}", 8)).find("must be from 0 to 3, is 4") != std::string::npos);
  const auto staged = run_of(deepspeed("{pipeline: {stages: 4, activation_checkpoint_interval: 1}, tensor_parallel: {autotp_size: 2}}", 16));
  CHECK(staged.pp == 4);
  CHECK(staged.tp == 2);
  CHECK(staged.dp == 2);
  CHECK(staged.recompute == Recompute::full);
  CHECK(staged.framework == "megatron-deepspeed");
  CHECK(run_of(deepspeed("{sequence_parallel_size: 2}", 16)).cp_algorithm == CpAlgorithm::ulysses);
}

TEST_CASE("DeepSpeed: the three batch sizes are one product", "[deepspeed]") {
  const auto with = [](const std::string& keys) { return deepspeed("{zero_optimization: {stage: 2}, " + keys + "}", 8); };
  const auto all = run_of(with("train_batch_size: 64, train_micro_batch_size_per_gpu: 2, gradient_accumulation_steps: 4"));
  CHECK(all.micro_batch_size == 2);
  CHECK(all.micro_batch_num == 4);
  CHECK(all.global_batch_size == 64);
  CHECK(run_of(with("train_batch_size: 64, train_micro_batch_size_per_gpu: 2")).micro_batch_num == 4);
  CHECK(run_of(with("train_batch_size: 64, gradient_accumulation_steps: 4")).micro_batch_size == 2);
  CHECK(run_of(with("train_micro_batch_size_per_gpu: 2, gradient_accumulation_steps: 4")).global_batch_size == 64);
  CHECK(problems(with("train_batch_size: 65, train_micro_batch_size_per_gpu: 2")).find("train_batch_size: 65 is not micro-batch x accumulation steps x 8") != std::string::npos);
  CHECK_FALSE(problems(with("train_batch_size: 64, train_micro_batch_size_per_gpu: 2, gradient_accumulation_steps: 2")).empty());
  const auto open = run_of(with("train_batch_size: auto, train_micro_batch_size_per_gpu: auto, gradient_accumulation_steps: auto"));
  CHECK_FALSE(open.micro_batch_size);
  CHECK_FALSE(open.global_batch_size);
}

TEST_CASE("DeepSpeed: what is not priced is a warning, so --strict refuses it", "[deepspeed]") {
  CHECK(warned(deepspeed("{zero_optimization: {stage: 3, offload_optimizer: {device: cpu}}}", 8), "not priced"));
  CHECK(warned(deepspeed("{zero_optimization: {stage: 3, offload_param: {device: nvme}}}", 8), "not priced"));
  CHECK_FALSE(warned(deepspeed("{zero_optimization: {stage: 3, offload_param: {device: none}}}", 8), "not priced"));
  CHECK(warned(deepspeed("{zero_optimization: {stage: 3, zero_hpz_partition_size: 8}}", 8), "hpZ"));
  CHECK(warned(deepspeed("{activation_checkpointing: {cpu_checkpointing: true}}", 8), "not priced"));
  CHECK(warned(deepspeed("{optimizer: {type: Lamb}}", 8), "priced as AdamW"));
  CHECK(run_of(deepspeed("{optimizer: {type: SGD}}", 8)).optimizer == OptimizerKind::sgd);
}

TEST_CASE("Accelerate: plugins", "[accelerate]") {
  const auto fsdp = [](const std::string& keys, std::optional<std::int64_t> devices = std::nullopt) {
    return accelerate("{distributed_type: FSDP, mixed_precision: bf16, num_processes: 16, num_machines: 2, fsdp_config: {" + keys + "}}", devices);
  };
  CHECK(run_of(fsdp("fsdp_sharding_strategy: 1")).zero == ZeroLevel::parameters);
  CHECK(run_of(fsdp("fsdp_sharding_strategy: SHARD_GRAD_OP")).zero == ZeroLevel::gradients);
  CHECK(run_of(fsdp("fsdp_sharding_strategy: NO_SHARD")).zero == ZeroLevel::none);
  CHECK(run_of(fsdp("fsdp_sharding_strategy: HYBRID_SHARD")).optimizer_shard == 8);
  CHECK(run_of(fsdp("fsdp_version: 2, fsdp_reshard_after_forward: false")).zero == ZeroLevel::gradients);
  CHECK(run_of(fsdp("")).zero == ZeroLevel::parameters);
  CHECK(run_of(fsdp("fsdp_activation_checkpointing: true")).recompute == Recompute::full);
  CHECK(run_of(fsdp("")).features == std::vector<std::string>{"autocast"});
  CHECK(run_of(fsdp("", 32)).dp == 32);  // -d wins
  CHECK(warned(fsdp("fsdp_offload_params: true"), "not priced"));
  CHECK(warned(fsdp("fsdp_sharding_strategy: HYBRID_SHARD", 64), "sharding over all ranks is assumed"));  // the nodes of another cluster
  CHECK(problems(fsdp("fsdp_sharding_strategy: FULL")).find("'FULL' is no sharding strategy") != std::string::npos);

  const auto zero = run_of(accelerate("{distributed_type: DEEPSPEED, num_processes: 8, mixed_precision: bf16, deepspeed_config: {zero_stage: 3, gradient_accumulation_steps: 4}}"));
  CHECK(zero.zero == ZeroLevel::parameters);
  CHECK(zero.framework == "deepspeed-zero3-2021");
  const auto megatron = run_of(accelerate("{distributed_type: MEGATRON_LM, num_processes: 16, megatron_lm_config: {megatron_lm_tp_degree: 4, megatron_lm_pp_degree: 2, "
                                          "megatron_lm_num_micro_batches: 8, megatron_lm_recompute_activations: true, megatron_lm_use_distributed_optimizer: true}}"));
  CHECK(megatron.tp == 4);
  CHECK(megatron.dp == 2);
  CHECK(megatron.recompute == Recompute::selective);
  CHECK(megatron.framework == "megatron-core");
  CHECK(run_of(accelerate("{distributed_type: MULTI_GPU, num_processes: 8}")).zero == ZeroLevel::none);
  CHECK(problems(accelerate("{distributed_type: TPU}")).find("'TPU' cannot be priced") != std::string::npos);
  CHECK(problems(accelerate("{distributed_type: FSDP, parallelism_config: {parallelism_config_tp_size: 2}}")).find("cannot be priced") != std::string::npos);
  CHECK(run_of(accelerate("{distributed_type: FSDP, num_processes: 16, parallelism_config: {parallelism_config_dp_shard_size: 4, parallelism_config_dp_replicate_size: 4}}")).optimizer_shard == 4);
  CHECK(problems(accelerate("{distributed_type: FSDP, num_procesess: 8}")).find("unknown key 'num_procesess'") != std::string::npos);
}

TEST_CASE("Accelerate: a DeepSpeed file of its own", "[accelerate]") {
  const Folder folder;
  folder.write("zero.json", R"({"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})");
  const auto with = [&](const std::string& name) {
    const std::string path = folder.write("accelerate.yaml", "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  deepspeed_config_file: " + name + "\n");
    return read_request(path, "", data());
  };
  const auto run = run_of(with("zero.json"));
  CHECK(run.zero == ZeroLevel::gradients);
  CHECK(run.global_batch_size == 64);
  CHECK(problems(with("gone.json")).find("4:26 deepspeed_config.deepspeed_config_file: the DeepSpeed configuration 'gone.json' cannot be read") == 0);
}

TEST_CASE("Trainer arguments", "[hf_trainer]") {
  const auto request = read_request(ND_TEST_DATA_DIR "/examples/hf_trainer/sft.yaml", "", data(), {.devices = 8});
  REQUIRE(request);
  CHECK(request->format == "hf_trainer");
  CHECK(request->model.hidden_size == 4096);  // the preset that model_name_or_path names
  CHECK(request->run.micro_batch_size == 2);
  CHECK(request->run.micro_batch_num == 8);
  CHECK(request->run.global_batch_size == 128);
  CHECK(request->run.recompute == Recompute::full);
  CHECK(request->run.zero == ZeroLevel::parameters);
  CHECK(request->run.seq_length == 4096);
  const std::string base = "{per_device_train_batch_size: 1, ";
  CHECK(run_of(trainer(base + "optim: adamw_bnb_8bit}", 8)).optimizer == OptimizerKind::adamw_8bit);
  CHECK(run_of(trainer(base + "attn_implementation: eager}", 8)).flash_attention == false);
  CHECK(run_of(trainer(base + "use_liger_kernel: true}", 8)).features == std::vector<std::string>{"liger"});
  CHECK(run_of(trainer(base + "bf16: true}", 8)).features == std::vector<std::string>{"autocast"});  // fp32 weights under autocast
  CHECK(run_of(trainer(base + "bf16: true, torch_dtype: bfloat16}", 8)).features.empty());
  CHECK(run_of(trainer(base + "fsdp: full_shard auto_wrap}", 8)).zero == ZeroLevel::parameters);
  CHECK(run_of(trainer(base + "fsdp: [shard_grad_op]}", 8)).zero == ZeroLevel::gradients);
  CHECK(run_of(trainer(base + "x: 1}", 8)).zero == ZeroLevel::none);
  CHECK(problems(trainer(base + "use_peft: true}", 8)).find("adapters can only be priced with the model they are on") != std::string::npos);
  CHECK(problems(trainer("{per_device_train_batch_size: 0}", 8)).find("must be at least 1") != std::string::npos);
}

TEST_CASE("Low-rank adapters on a frozen base", "[hf_trainer]") {
  const std::string base = "{per_device_train_batch_size: 1, gradient_accumulation_steps: 1, max_length: 2048, bf16: true, model_name_or_path: meta-llama/Llama-3.1-8B, ";
  // Llama-3.1-8B: h 4096, 32 heads and 8 key/value heads of 128, f 14336, 32 layers. Rank r on a matrix of in x out: r (in + out).
  const double q = 4096 + 4096, k = 4096 + 1024, mlp = 4096 + 14336;
  const auto on_two = run_of(trainer(base + "use_peft: true, lora_r: 16, lora_target_modules: [q_proj, v_proj]}", 8));
  CHECK(on_two.frozen_base == true);
  CHECK(on_two.trained_parameters == 16.0 * 32 * (q + k));
  CHECK(on_two.base_weight_bytes == 2.0);  // bf16 throughout
  const auto on_all = run_of(trainer(base + "finetuning_type: lora, lora_rank: 8, lora_target: all}", 8));
  CHECK(on_all.trained_parameters == 8.0 * 32 * (2 * q + 2 * k + 3 * mlp));
  // 4 bits, a 32-bit constant per 64 weights; with the constants quantised 0.127 bits instead (QLoRA).
  CHECK(*run_of(trainer(base + "use_peft: true, lora_r: 16, load_in_4bit: true}", 8)).base_weight_bytes == Approx(0.5625));
  CHECK(*run_of(trainer(base + "finetuning_type: lora, lora_rank: 8, quantization_bit: 4}", 8)).base_weight_bytes == Approx(0.515875));
  const auto said = [&](const std::string& rest) {
    const auto request = trainer(base + rest, 8);
    REQUIRE(request);
    return std::count_if(request->notes.begin(), request->notes.end(), [](const Diagnostic& one) { return one.severity == Severity::warning && one.message.find("the trainer's default") != std::string::npos; });
  };
  CHECK(said("use_peft: true}") == 2);  // rank and matrices are defaults that change the price
  CHECK(said("use_peft: true, lora_r: 16, lora_target_modules: all-linear}") == 0);
  CHECK(problems(trainer(base + "finetuning_type: oft}", 8)).find("fine-tuning of type 'oft' cannot be priced") != std::string::npos);
  CHECK(problems(trainer(base + "use_peft: true, lora_r: 8, lora_target_modules: [conv1d]}", 8)).find("adapters on 'conv1d' cannot be priced") != std::string::npos);
  CHECK(problems(trainer(base + "load_in_4bit: true}", 8)).find("quantised weights without adapters") != std::string::npos);
  CHECK_FALSE(run_of(trainer(base + "use_peft: false, lora_r: 16}", 8)).frozen_base);
}

TEST_CASE("A Hugging Face model with its trainer's files", "[hf_trainer]") {
  const Folder folder;
  const std::string train = folder.write("train.yaml", "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nmax_length: 2048\n");
  const std::string launch = folder.write("launch.yaml", "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n");
  const auto request = read_request({.main = "llama-3.1-8b", .train = train, .accelerate = launch}, data());
  INFO(problems(request));
  REQUIRE(request);
  CHECK(request->format == "hf");
  CHECK(request->run.framework == "hf-trainer");
  CHECK(request->run.global_batch_size == 64);
  CHECK(request->run.dp == 8);
  CHECK(request->run.zero == ZeroLevel::parameters);
  // A DeepSpeed JSON stands for an Accelerate YAML, and a contradiction between files is an error.
  const std::string zero = folder.write("zero.json", R"({"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 3})");
  CHECK(read_request({.main = "llama-3.1-8b", .accelerate = zero}, data(), {.devices = 8})->run.zero == ZeroLevel::optimizer);
  CHECK(problems(read_request({.main = "llama-3.1-8b", .train = train, .accelerate = zero}, data(), {.devices = 8})).find("the batch of a device is 3 here and 2 in another file") != std::string::npos);
}
