// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "formats/readers/reader.hpp"
#include "nd/formats.hpp"

// Configurations as public repositories write them, reduced to the keys in use: each field that a price depends on is either
// read, left open, or said to be a default; none is filled in silently.

using namespace nd;
using namespace nd::formats;

namespace {

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

using Read = Result<Request> (*)(const ConfigNode&, const std::string&, const DataStore&, const ReadOptions&);

Request good(Read read, const Result<ConfigNode>& root, std::optional<std::int64_t> devices = 16) {
  REQUIRE(root);
  auto request = read(*root, "f", data(), {.devices = devices});
  if (!request) FAIL(to_text(request.error().diagnostics.front()));
  return *std::move(request);
}

bool said(const Request& request, std::string_view part) {
  return std::any_of(request.notes.begin(), request.notes.end(), [&](const Diagnostic& one) { return one.message.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("DeepSpeed configurations as they are published", "[wild][deepspeed]") {
  int count = 0;
  for (int stage = 0; stage <= 3; ++stage)
    for (const char* const offload : {"", R"("offload_optimizer": {"device": "cpu", "pin_memory": true},)", R"("offload_param": {"device": "nvme", "nvme_path": "/n"},)", R"("offload_optimizer": {"device": "none"},)"})
      for (const char* const precision : {R"("bf16": {"enabled": true})", R"("fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16})", R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"})"}) {
        const std::string text = std::string("{\"zero_optimization\": {") + offload + "\"stage\": " + std::to_string(stage) +
                                 R"(, "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
          "stage3_param_persistence_threshold": "auto", "stage3_gather_16bit_weights_on_model_save": true, "mics_shard_size": -1, "zero_hpz_partition_size": 1}, )" +
                                 precision +
                                 R"(, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto"}},
          "gradient_clipping": "auto", "steps_per_print": 2000, "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "activation_checkpointing": {"partition_activations": true, "number_checkpoints": null}, "wall_clock_breakdown": false, "zero_allow_untested_optimizer": true})";
        INFO(text);
        const auto request = good(read_deepspeed, parse_json(text, "f.json"));
        CHECK(static_cast<int>(*request.run.zero) == stage);
        CHECK(request.run.dp == 16);
        const bool moves = std::string(offload).find("cpu") != std::string::npos || std::string(offload).find("nvme") != std::string::npos;
        CHECK(said(request, "not priced") == moves);
        CHECK(request.run.compute_dtype.has_value() == (text.find("\"enabled\": true") != std::string::npos));
        CHECK_FALSE(request.run.micro_batch_size);
        CHECK_FALSE(request.run.global_batch_size);
        CHECK_FALSE(request.run.recompute);
        CHECK_FALSE(request.run.seq_length);
        ++count;
      }
  CHECK(count == 48);
}

TEST_CASE("Accelerate configurations as they are published", "[wild][accelerate]") {
  int count = 0;
  for (const char* const plugin : {"fsdp_config:\n  fsdp_sharding_strategy: 1\n", "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer\n",
                                   "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n  fsdp_cpu_offload: false\n",
                                   "fsdp_config:\n  fsdp_version: 1\n  fsdp_reshard_after_forward: FULL_SHARD\n  fsdp_sync_module_states: true\n", "fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
                                   "deepspeed_config: {}\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_activation_checkpointing: true\n"})
    for (const char* const precision : {"bf16", "fp16", "'no'", "\"no\"", "no"})
      for (const char* const processes : {"num_processes: 16\nnum_machines: 2\n", "num_machines: 1\n"}) {
        const std::string text = std::string("compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: FSDP\ndowncast_bf16: 'no'\nenable_cpu_affinity: false\n") + plugin +
                                 "machine_rank: 0\nmain_process_ip: null\nmain_training_function: main\nmixed_precision: " + precision + "\n" + processes +
                                 "rdzv_backend: static\nsame_network: true\ntpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\nuse_cpu: false\ngpu_ids: all\n";
        INFO(text);
        const auto request = good(read_accelerate, parse_yaml(text, "f.yaml"), std::nullopt);
        CHECK(request.run.zero == (text.find("GRAD_OP") == std::string::npos ? ZeroLevel::parameters : ZeroLevel::gradients));
        CHECK(request.run.devices.has_value() == (text.find("num_processes") != std::string::npos));
        CHECK(request.run.framework == "hf-trainer");
        const bool mixed = text.find("mixed_precision: bf16") != std::string::npos || text.find("mixed_precision: fp16") != std::string::npos;
        CHECK((request.run.features == std::vector<std::string>{"autocast"}) == mixed);
        CHECK(request.run.compute_dtype == (!mixed ? Dtype::fp32 : text.find("mixed_precision: bf16") != std::string::npos ? Dtype::bf16 : Dtype::fp16));
        CHECK_FALSE(request.run.micro_batch_size);
        CHECK_FALSE(request.run.global_batch_size);
        CHECK(request.run.recompute.has_value() == (text.find("activation_checkpointing") != std::string::npos));
        ++count;
      }
  CHECK(count == 60);
}

TEST_CASE("Trainer arguments as they are published", "[wild][hf_trainer]") {
  int count = 0;
  for (const char* const sharding : {"", "fsdp: full_shard auto_wrap\n", "fsdp: [full_shard, auto_wrap]\nfsdp_config: {fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer}\n", "fsdp: ''\n",
                                     "deepspeed: {zero_optimization: {stage: 2}, bf16: {enabled: true}}\n"})
    for (const char* const optim : {"adamw_torch", "adamw_torch_fused", "paged_adamw_32bit", "paged_adamw_8bit", "adafactor"})
      for (const char* const recompute : {"", "gradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false\n"}) {
        const std::string text = std::string("### model\nmodel_name_or_path: Qwen/Qwen3-8B\ntorch_dtype: bfloat16\n### method\nstage: sft\ndo_train: true\nfinetuning_type: full\nlora_rank: 8\n") + sharding +
                                 "### dataset\ncutoff_len: 2048\nmax_samples: 1000\noverwrite_cache: true\n### output\noutput_dir: o\nlogging_steps: 10\nsave_strategy: steps\nreport_to: [wandb]\n### train\n" +
                                 recompute + "per_device_train_batch_size: 2\nper_device_eval_batch_size: 8\ngradient_accumulation_steps: 4\nlearning_rate: 1.0e-5\nnum_train_epochs: 3.0\n"
                                 "lr_scheduler_type: cosine\nwarmup_ratio: 0.1\nbf16: true\nddp_timeout: 180000000\noptim: " + optim + "\n";
        INFO(text);
        const auto request = good(read_hf_trainer, parse_yaml(text, "f.yaml"));
        CHECK(request.model.hidden_size == 4096);  // the preset of that name
        CHECK(request.run.seq_length == 2048);
        CHECK(request.run.micro_batch_size == 2);
        CHECK(request.run.global_batch_size == 2 * 4 * 16);
        CHECK(request.run.zero == (text.find("full_shard") != std::string::npos ? ZeroLevel::parameters : text.find("stage: 2") != std::string::npos ? ZeroLevel::gradients : ZeroLevel::none));
        CHECK(said(request, "priced as AdamW") == (std::string(optim) == "adafactor"));
        CHECK((request.run.optimizer == OptimizerKind::adamw_8bit) == (std::string(optim) == "paged_adamw_8bit"));
        CHECK(request.run.recompute.has_value() == (*recompute != '\0'));
        ++count;
      }
  CHECK(count == 50);
}

TEST_CASE("TorchTitan jobs as they are published", "[wild][torchtitan]") {
  int count = 0;
  const std::string head = "[job]\ndump_folder = \"./outputs\"\ndescription = \"d\"\n[profiling]\nenable_profiling = true\nprofile_freq = 100\n[metrics]\nlog_freq = 10\nenable_tensorboard = true\n";
  const std::string tail = "[checkpoint]\nenable = false\nfolder = \"checkpoint\"\ninterval = 500\n[optimizer]\nname = \"AdamW\"\nlr = 3e-4\neps = 1e-8\n[lr_scheduler]\nwarmup_steps = 200\ndecay_ratio = 0.8\n";
  for (const char* const model : {"name = \"llama3\"\nflavor = \"8B\"\ntokenizer_path = \"./t\"\n", "name = \"deepseek_v3\"\nflavor = \"16B\"\nhf_assets_path = \"./a\"\n# converters = [\"float8\"]\n",
                                  "name = \"qwen3\"\nflavor = \"0.6B\"\n", "name = \"llama3\"\nflavor = \"70B\"\nconverters = [\"float8\"]\n"})
    for (const char* const parallel : {"data_parallel_replicate_degree = 1\ndata_parallel_shard_degree = -1\nfsdp_reshard_after_forward = \"default\"\ntensor_parallel_degree = 1\nenable_async_tensor_parallel = false\n"
                                       "pipeline_parallel_degree = 1\npipeline_parallel_schedule = \"1F1B\"\ncontext_parallel_degree = 1\n",
                                       "tensor_parallel_degree = 2\ndata_parallel_shard_degree = 8\n", "tensor_parallel_degree = 4\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"})
      for (const char* const checkpoint : {"[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n", "[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = '2'  # 'int' = ac every positive int layer or 'op'\n",
                                           "[activation_checkpoint]\nmode = \"full\"\n", ""}) {
        const std::string text = head + "[model]\n" + model + "[training]\nlocal_batch_size = 8\nseq_len = 4096\nmax_norm = 1.0\nsteps = 1_000\ndataset = \"c4\"\n[parallelism]\n" + parallel + checkpoint +
                                 "[compile]\nenable = false\ncomponents = [\"model\", \"loss\"]\n[quantize.linear.float8]\nenable_fsdp_float8_all_gather = false\nfilter_fqns = [\"output\"]\n" + tail;
        INFO(text);
        const auto request = good(read_torchtitan, parse_toml(text, "f.toml"));
        CHECK(request.run.devices == 16);
        CHECK(request.run.recompute.has_value());
        CHECK(said(request, "the trainer's own default") == (*checkpoint == '\0'));
        CHECK(request.run.gemm_dtype.has_value() == (std::string(model).find("\nconverters") != std::string::npos));
        CHECK(request.run.layers_per_chunk.empty() == (request.run.pp == 1));
        CHECK(request.run.global_batch_size == 8 * *request.run.dp);
        ++count;
      }
  CHECK(count == 48);
}
