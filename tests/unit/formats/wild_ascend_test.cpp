// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "megatron_support.hpp"

// Configurations of the Ascend stack and model files as public repositories write them, reduced to the keys in use (MindFormers:
// configs/ and its general templates; HyperParallel and MindSpeed: their samples; models: published config.json files). Each
// field that a price depends on is read or said to be assumed; the expected figures follow from the text by the batch identities.

using namespace nd;
using namespace nd::testing;

namespace {

/// Reads and resolves; a field nobody states and nobody mentions fails the test.
ResolvedRun resolved(const Request& request, const std::vector<std::string>& left_open = {}) {
  const auto model = resolve_model(request.model);
  REQUIRE(model);
  const auto profile = data().framework(request.run.framework, request.run.framework_version, request.run.features);
  REQUIRE(profile);
  const auto run = resolve_run(request.run, *model, *profile);
  for (const auto& one : run ? std::vector<Diagnostic>{} : run.error().diagnostics) UNSCOPED_INFO(to_text(one));
  REQUIRE(run);
  for (const auto& field : run->defaulted)
    if (std::find(left_open.begin(), left_open.end(), field) == left_open.end()) FAIL_CHECK("nobody states " << field);
  return *run;
}

}  // namespace

TEST_CASE("MindFormers files as they are published", "[wild][mindformers]") {
  int count = 0;
  // data, tensor, pipeline, micro-batches; a missing micro_batch_num is the trainer's 1.
  struct Degrees {
    const char* text;
    std::int64_t dp, tp, pp, mb;
  };
  for (const auto& degrees : {Degrees{"data_parallel: &dp 2\n  model_parallel: 2\n  pipeline_stage: 2\n  context_parallel: 1\n  use_seq_parallel: True\n  micro_batch_num: 2", 2, 2, 2, 2},
                              Degrees{"data_parallel: 1\n  model_parallel: 8\n  pipeline_stage: 2\n  use_seq_parallel: True\n  micro_batch_num: 128\n  vocab_emb_dp: False\n  gradient_aggregation_group: 4", 1, 8, 2, 128},
                              Degrees{"data_parallel: 8\n  model_parallel: 1\n  pipeline_stage: 1\n  micro_batch_num: 1\n  vocab_emb_dp: True", 8, 1, 1, 1},
                              Degrees{"data_parallel: 4\n  model_parallel: 4\n  pipeline_stage: 1\n  expert_parallel: 1\n  use_seq_parallel: False", 4, 4, 1, 1}})
    for (const char* const recompute : {"recompute: False\n  select_recompute: False", "recompute: True\n  select_recompute: False\n  mp_comm_recompute: True", "recompute: False\n  select_recompute: True\n  select_comm_recompute: True"})
      for (const char* const types : {"compute_dtype: \"float16\"\n    softmax_compute_type: \"float16\"\n    param_init_type: \"float16\"", "compute_dtype: \"bfloat16\"\n    softmax_compute_dtype: \"float32\"\n    params_dtype: \"float32\""})
        for (const char* const optimizer : {"FP32StateAdamWeightDecay\n  beta1: 0.9\n  eps: 1.e-8 # 1e-8", "AdamW\n  betas: [0.9, 0.999]\n  weight_decay: 0.01", "PmaAdamW\n  betas: [0.9, 0.95]"}) {
          const std::string text =
              std::string("seed: 0\noutput_dir: './output'\nload_checkpoint: ''\nauto_trans_ckpt: False\nonly_save_strategy: False\nresume_training: False\nrun_mode: 'train'\n") +
              "trainer:\n  type: CausalLanguageModelingTrainer\n  model_name: 'codellama_34b'\ndo_eval: False\nrunner_config:\n  epochs: 2\n  batch_size: 1\n  sink_mode: True\n  sink_size: 1\noptimizer:\n  type: " + optimizer +
              "\nlr_schedule:\n  type: CosineWithWarmUpLR\n  learning_rate: 1.e-5\ntrain_dataset: &train_dataset\n  data_loader:\n    type: MindDataset\n    shuffle: True\n  drop_remainder: True\ntrain_dataset_task:\n  type: CausalLanguageModelDataset\n  dataset_config: *train_dataset\n"
              "use_parallel: True\nparallel:\n  parallel_mode: 1 # 1-semi-auto\n  gradients_mean: False\n  enable_alltoall: False\n  full_batch: True\n  search_mode: \"sharding_propagation\"\n  enable_parallel_optimizer: True\n  strategy_ckpt_save_file: \"./s.ckpt\"\n"
              "  parallel_optimizer_config:\n    gradient_accumulation_shard: False\n    parallel_optimizer_threshold: 64\nparallel_config:\n  " + degrees.text + "\nmicro_batch_interleave_num: 1\nrecompute_config:\n  " + recompute +
              "\n  parallel_optimizer_comm_recompute: False\n  recompute_slice_activation: True\ncallbacks:\n  - type: MFLossMonitor\ncontext:\n  mode: 0 #0--Graph Mode\n  device_target: \"Ascend\"\n  max_call_depth: 10000\n  max_device_memory: \"55GB\"\n  jit_config:\n    jit_level: \"O1\"\n"
              "model:\n  model_config:\n    type: LlamaConfig\n    batch_size: 1 # add for increase predict\n    seq_length: 4096\n    hidden_size: 8192\n    num_layers: 48\n    num_heads: 64\n    vocab_size: 32000\n    multiple_of: 256\n    n_kv_heads: 8\n    rms_norm_eps: 1.0e-5\n"
              "    theta: 1000000.0\n    layernorm_compute_type: \"float32\"\n    rotary_dtype: \"float16\"\n    use_past: False\n    use_flash_attention: True\n    offset: 0\n    top_k: 3\n    " + types +
              "\n  arch:\n    type: LlamaForCausalLM\nrunner_wrapper:\n  type: MFTrainOneStepCell\n  scale_sense:\n    type: DynamicLossScaleUpdateCell\n  use_clip_grad: True\nprofile: False\n";
          INFO(text);
          const Request request = read_good(text, "f.yaml");
          const auto run = resolved(request, {"sequence_parallel", "optimizer_shard", "capacity_factor"});
          CHECK(run.strategy.dp == degrees.dp);
          CHECK(run.strategy.tp == degrees.tp);
          CHECK(run.strategy.pp == degrees.pp);
          CHECK(run.strategy.micro_batch_num == degrees.mb);
          CHECK(run.global_batch_size == degrees.dp * degrees.mb);  // batch_size 1
          CHECK(run.seq_length == 4096);
          CHECK(run.strategy.recompute == (std::string(recompute).find("recompute: True\n  select_recompute") == 0 ? Recompute::full : std::string(recompute).find("select_recompute: True") != std::string::npos ? Recompute::selective : Recompute::off));
          CHECK(run.compute_dtype == (std::string(types).find("compute_dtype: \"float16\"") == 0 ? Dtype::fp16 : Dtype::bf16));
          CHECK(request.run.param_bytes == (std::string(types).find("float32\"\n    params") == std::string::npos ? 2.0 : 4.0));
          // No multiplier stated: 8192 x 4 x 2 / 3 = 21845, the next multiple of 256 is 22016.
          CHECK(resolve_model(request.model)->kinds.front().ffn.width == 22016);
          ++count;
        }
  CHECK(count == 72);
}

TEST_CASE("HyperParallel train.yaml files as they are published", "[wild][hyper_v2]") {
  int count = 0;
  struct Degrees {
    const char* text;
    std::int64_t tp, pp, cp;
  };
  for (const auto& degrees : {Degrees{"tp_size: 2\n  cp_size: 1\n  pp_size: 1\n  ep_size: 1\n  sequence_parallel: true", 2, 1, 1}, Degrees{"tp_size: 1", 1, 1, 1},
                              Degrees{"tp_size: 4\n  pp_size: 2\n  sequence_parallel: True\n  pipeline_scheduler: \"1f1b\"", 4, 2, 1}, Degrees{"cp_size: 2\n  tp_size: 2\n  sequence_parallel: off", 2, 1, 2}})
    for (const char* const mode : {"\"off\"", "off", "full", "\"selective\"", "'full'"})
      for (const char* const shards : {"dp_shard_size: 2\n  reshard_after_forward: true\n  reshard_after_backward: true", "dp_shard_size: 2\n  reshard_after_forward: false", "dp_shard_size: 1"}) {
        const std::string text = std::string("model:\n  name: m\n  config_overrides: {num_hidden_layers: 32, hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256}\n  torch_dtype: bfloat16\n") +
                                 "training:\n  train_iters: 1_000\n  global_batch_size: 64\n  micro_batch_size: 1\n  max_grad_norm: 1.0\n  seed: 42\naccelerator:\n  " + degrees.text + "\nfsdp_config:\n  " + shards +
                                 "\nactivation_checkpoint:\n  mode: " + mode + "\ndataset:\n  data_transform:\n    max_seq_len: 8192\noptimizer:\n  _target_: hyper_parallel.components.optim.AdamW\n  lr: 3.0e-4\n";
        INFO(text);
        const Request request = read_good(text, "f.yaml", {.devices = 16});
        RunSpec spec = request.run;
        spec.devices = 16;
        Request on = request;
        on.run = spec;
        const auto run = resolved(on, {"sequence_parallel"});
        CHECK(run.strategy.tp == degrees.tp);
        CHECK(run.strategy.pp == degrees.pp);
        CHECK(run.strategy.cp == degrees.cp);
        CHECK(run.strategy.dp == 16 / (degrees.tp * degrees.pp * degrees.cp));
        CHECK(run.global_batch_size == 64);
        const std::string word = mode;
        CHECK(run.strategy.recompute == (word.find("full") != std::string::npos ? Recompute::full : word.find("selective") != std::string::npos ? Recompute::selective : Recompute::off));
        CHECK(run.strategy.op == (std::string(shards).find("size: 1") == std::string::npos ? 2 : 1));
        ++count;
      }
  CHECK(count == 60);
}

TEST_CASE("HyperParallel in three files: however the sections lie, the run of the single train.yaml", "[wild][hyperparallel2]") {
  const auto folder = std::filesystem::temp_directory_path() / "nd_three_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto write = [&folder](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  const auto indented = [](const std::string& text) {
    std::string out = "  ";
    for (const char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
    return out + "\n";
  };
  int count = 0;
  for (const char* const model : {"config_overrides: {num_hidden_layers: 32, hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256}\ntorch_dtype: bfloat16",
                                  "pretrained_model_name_or_path: llama-3.1-8b\ntorch_dtype: bfloat16", "config_path: llama-3.1-8b\nparam_init_type: float32\ncompute_dtype: bfloat16"})
    for (const char* const degrees : {"tp_size: 4\npp_size: 2\nsequence_parallel: true", "tp_degree: 2\npipeline_parallel_degree: 2\ncontext_parallel_degree: 2\nuse_seq_parallel: true", "tp_size: 1\npp_size: 4\npipeline_scheduler: 1f1b"})
      // Bits: the section of the file is named; the sharding stands in the training file; recompute stands in the accelerate file.
      for (int shape = 0; shape < 8; ++shape) {
        const bool named = (shape & 1) != 0, sharding_in_training = (shape & 2) != 0, recompute_in_accelerate = (shape & 4) != 0;
        const std::string batch = "global_batch_size: 64\nmicro_batch_size: 1\ntrain_iters: 100\nseed: 42";
        const std::string sharding = "fsdp_config:\n  dp_shard_size: 2\n  reshard_after_forward: true\n  reshard_after_backward: true\n";
        const std::string recompute = "activation_checkpoint:\n  mode: \"selective\"\n";
        const std::string rest = "dataset:\n  data_transform:\n    max_seq_len: 8192\noptimizer:\n  _target_: hyper_parallel.components.optim.AdamW\n  lr: 3.0e-4\n";
        const auto section = [&](const char* name, const std::string& text) { return named ? name + (":\n" + indented(text)) : text + "\n"; };
        const RequestFiles files{
            .main = write("model.yaml", section("model", model)),
            .format = "hyperparallel2",
            .train = write("train.yaml", section("training", batch) + rest + (sharding_in_training ? sharding : "") + (recompute_in_accelerate ? "" : recompute)),
            .accelerate = write("accelerate.yaml", section("accelerator", degrees) + (sharding_in_training ? "" : sharding) + (recompute_in_accelerate ? recompute : ""))};
        const std::string whole = write("single.yaml", "model:\n" + indented(model) + "training:\n" + indented(batch) + "accelerator:\n" + indented(degrees) + sharding + recompute + rest);
        INFO(model << "\n" << degrees << "\nshape " << shape);
        const auto three = read_request(files, data(), {.devices = 16});
        const auto single = read_request(whole, "hyper_v2", data(), {.devices = 16});
        for (const auto* const read : {&three, &single})
          if (!*read)
            for (const auto& one : read->error().diagnostics) UNSCOPED_INFO(to_text(one));
        REQUIRE(three);
        REQUIRE(single);
        CHECK(three->model == single->model);
        CHECK(three->run.global_batch_size == 64);
        RunSpec a = three->run, b = single->run;
        a.origins.clear();
        b.origins.clear();
        CHECK(a == b);
        CHECK(three->run.origins.size() == single->run.origins.size());
        for (const auto& [field, origin] : three->run.origins) {
          INFO(field);
          REQUIRE(single->run.origins.contains(field));
          CHECK(origin.kind == single->run.origins.at(field).kind);
        }
        ++count;
      }
  CHECK(count == 72);
  std::filesystem::remove_all(folder);
}

TEST_CASE("Search configs as they are published", "[wild][search_config]") {
  int count = 0;
  for (const char* const tp : {"tp: auto", "tp: 2", "tp: [1, 2, 4, 8]"})
    for (const char* const pp : {"pp: auto", "pp: 1", "pp: [1, 2]"})
      for (const char* const recompute : {"recompute: \"auto\"", "recompute: off", "recompute: full"})
        for (const char* const memory : {"device_memory_gb: 64.0", "device_type: \"A3\""}) {
          const std::string text = std::string("model:\n  name: \"llama3.1-8b\"\n  num_hidden_layers: 32\n  hidden_size: 4096\n  intermediate_size: 14336\n  num_attention_heads: 32\n  num_key_value_heads: 8\n  vocab_size: 128256\n") +
                                   "  max_position_embeddings: 8192\n  local_batch_size: 1\n  compute_dtype: \"bfloat16\"\ncluster:\n  num_nodes: 4\n  cards_per_node: 8\n  " + memory + "\nparallelism:\n  dp: auto\n  fsdp: auto\n  " + tp + "\n  " + pp +
                                   "\n  cp: 1\n  ep: 1\n  micro_batch_num: auto\nconstraint:\n  global_batch_size: 128\n" + recompute + "\npp_config:\n  pp_interleave_num: 1\n  pipeline_schedule: \"1F1B\"\n";
          INFO(text);
          const Request request = read_good(text, "s.yaml");
          CHECK(request.search_config);
          CHECK(request.run.devices == 32);
          CHECK(request.run.global_batch_size == 128);
          CHECK(request.run.seq_length == 8192);
          const auto values = [&request](Dimension dimension) {
            for (const auto& one : request.candidates)
              if (one.dimension == dimension) return one.values;
            return std::vector<std::int64_t>{-1};
          };
          CHECK(values(Dimension::tp) == (std::string(tp) == "tp: auto" ? Counts{} : std::string(tp) == "tp: 2" ? Counts{2} : Counts{1, 2, 4, 8}));
          CHECK(values(Dimension::pp) == (std::string(pp) == "pp: auto" ? Counts{} : std::string(pp) == "pp: 1" ? Counts{1} : Counts{1, 2}));
          CHECK(values(Dimension::cp) == Counts{1});
          ++count;
        }
  CHECK(count == 54);
}

TEST_CASE("MindSpeed JSON files as they are published", "[wild][mindspeed]") {
  int count = 0;
  for (const int tp : {1, 2, 8})
    for (const int pp : {1, 2, 4})
      for (const char* const recompute : {"", ", \"recompute_num_layers\": 2", ", \"recompute_num_layers\": 0"})
        for (const char* const type : {"bf16", "fp16"}) {
          const std::string text = "{\"model_id\": \"run\", \"tmp\": {\"dp\": 2, \"tp\": " + std::to_string(tp) + ", \"pp\": " + std::to_string(pp) +
                                   ", \"cp\": 1, \"ep\": 1, \"etp\": 0, \"vpp\": 1, \"mbs\": 1, \"seqlen\": 4096}, \"text_decoder\": {\"model_id\": \"m\", \"freeze\": false, \"tensor_model_parallel_size\": " + std::to_string(tp) +
                                   ", \"pipeline_model_parallel_size\": " + std::to_string(pp) +
                                   ", \"sequence_parallel\": true, \"num_layers\": 32, \"hidden_size\": 4096, \"ffn_hidden_size\": 11008, \"num_attention_heads\": 32, \"num_query_groups\": 0, \"kv_channels\": 0, \"vocab_size\": 32000, \"qk_layernorm\": false, "
                                   "\"k_lora_rank\": 0, \"num_moe_experts\": 1, \"moe_router_topk\": 1, \"n_shared_exp\": 0, \"mtp_num_layers\": 0, \"params_dtype\": \"" + type + "\", \"attention_softmax_in_fp32\": true" + recompute + "}}";
          INFO(text);
          const Request request = read_good(text, "f.json");
          const auto run = resolved(request, {"capacity_factor"});
          CHECK(run.strategy.tp == tp);
          CHECK(run.strategy.pp == pp);
          CHECK(run.strategy.micro_batch_num == pp);
          CHECK(run.global_batch_size == 2 * pp);
          CHECK(run.strategy.recompute == (std::string(recompute).find(": 2") == std::string::npos ? Recompute::off : Recompute::full));
          CHECK(parameters(request.model) == 6'738'415'616);  // Llama-2-7B
          ++count;
        }
  CHECK(count == 54);
}

TEST_CASE("Launch scripts of every shape say the same run", "[wild][megatron]") {
  // One run, spelt in the ways of public launchers: plain words, arrays, quoted blocks, defaults of the environment, srun and srun-less
  // launches, '=' forms, a list that a later word overrides.
  int count = 0;
  const std::string fixed = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --ffn-hidden-size 14336 --swiglu --normalization RMSNorm --disable-bias-linear "
                            "--untie-embeddings-and-output-weights --position-embedding-type rope --max-position-embeddings 8192 --padded-vocab-size 128256 --attention-dropout 0 --hidden-dropout 0 ";
  const std::vector<std::pair<std::string, std::string>> launches{
      {"", "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py "},
      {"GPUS_PER_NODE=8\nNNODES=${NNODES:-2}\nDISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES)\n", "torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py "},
      {"NPUS_PER_NODE=8\nNNODES=2\nDISTRIBUTED_ARGS=\"\n    --nproc_per_node $NPUS_PER_NODE \\\n    --nnodes $NNODES \\\n    --master_port 6000\n\"\n", "torchrun $DISTRIBUTED_ARGS pretrain_gpt.py "},
      {"export CUDA_DEVICE_MAX_CONNECTIONS=1\nset -ex\n", "python -m torch.distributed.launch --nproc_per_node=8 --nnodes=2 pretrain_gpt.py "}};
  const std::vector<std::pair<std::string, std::string>> degrees{
      {"", "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "},
      {"TP=2\nPP=2\n", "--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP "},
      {"TP=$((1+1))\nPP=${PP:-2}\n", "--tensor-model-parallel-size=$TP --pipeline-model-parallel-size=${PP} "},
      {"P=(\n    --tensor-model-parallel-size 2   # within a node\n    --pipeline-model-parallel-size 2\n)\n", "\"${P[@]}\" "}};
  const std::vector<std::pair<std::string, std::string>> batches{
      {"", "--micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16 --use-distributed-optimizer --sequence-parallel"},
      {"MBS=1\nGBS=$((MBS*64))\nB=\"\n    --micro-batch-size ${MBS} \\\n    --global-batch-size ${GBS} \\\n    --seq-length 4096 \\\n    --bf16\n\"\n", "$B --use-distributed-optimizer --sequence-parallel"},
      {"", "--global-batch-size 128 --global-batch-size 64 --micro-batch-size 1 --seq-length 4096 --bf16 --sequence-parallel --use-distributed-optimizer | tee logs/train.log"},
      {"SEQ_LEN=4096\n", "--micro-batch-size 1 --global-batch-size 64 --seq-length ${SEQ_LEN} --bf16 --use-distributed-optimizer --sequence-parallel \\\n    --lr 1.25e-6 --log-interval 1 --save-interval 10000 --eval-iters 0"}};
  for (const auto& launch_line : launches)
    for (const auto& degree : degrees)
      for (const auto& batch : batches) {
        const std::string text = "#!/bin/bash\n" + launch_line.first + degree.first + batch.first + launch_line.second + fixed + degree.second + batch.second + "\n";
        INFO(text);
        const Request request = read_good(text);
        const auto run = resolved(request);
        CHECK(run.devices == 16);
        CHECK(run.strategy.dp == 4);
        CHECK(run.strategy.tp == 2);
        CHECK(run.strategy.pp == 2);
        CHECK(run.strategy.sequence_parallel);
        CHECK(run.strategy.zero == ZeroLevel::optimizer);
        CHECK(run.global_batch_size == 64);
        CHECK(run.strategy.micro_batch_num == 16);
        CHECK(run.seq_length == 4096);
        CHECK(parameters(request.model) == 8'030'261'248);  // Llama-3.1-8B
        ++count;
      }
  CHECK(count == 64);
}

TEST_CASE("Model files as they are published, in every dress", "[wild][hf]") {
  // A preset with the keys that a hub file has besides, null values, another spelling of the data type, nested as text_config.
  int count = 0;
  const auto names = data().model_names();
  REQUIRE(names);
  for (const auto& name : *names) {
    const std::string path = std::string(ND_TEST_DATA_DIR) + "/models/" + name + "/config.json";
    const auto text = formats::read_text_file(path);
    REQUIRE(text);
    const auto plain = read_request(path, "hf", data());
    REQUIRE(plain);
    const std::int64_t total = parameters(plain->model);
    std::string dressed = *text, more;
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"_name_or_path", "\"x\""}, {"bos_token_id", "1"}, {"pad_token_id", "null"}, {"initializer_range", "0.02"},
                                                                                     {"use_cache", "true"}, {"transformers_version", "\"4.51.0\""}, {"quantization_config", "null"}})
      if (text->find("\"" + key + "\"") == std::string::npos) more += "\"" + key + "\": " + value + ", ";
    dressed.insert(dressed.find('{') + 1, more);
    INFO(path);
    const auto again = read(dressed, path);
    for (const auto& line : problems(again)) UNSCOPED_INFO(line);
    REQUIRE(again);
    CHECK(parameters(again->model) == total);
    ++count;
  }
  CHECK(count >= 45);
}
