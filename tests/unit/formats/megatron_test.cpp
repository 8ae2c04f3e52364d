// SPDX-License-Identifier: Apache-2.0
#include "megatron_support.hpp"

#include <algorithm>

#include "formats/megatron/model.hpp"
#include "formats/megatron/stages.hpp"
#include "layout/layout.hpp"

using namespace nd;
using namespace nd::testing;

namespace {

/// Layers of each stage, chunk by chunk, as they are priced.
std::vector<Counts> layers_of(const Request& request) {
  const auto model = resolve_model(request.model);
  REQUIRE(model);
  const auto profile = data().framework(request.run.framework, "", request.run.features);
  REQUIRE(profile);
  const auto run = resolve_run(request.run, *model, *profile);
  REQUIRE(run);
  std::vector<Counts> out(static_cast<std::size_t>(run->strategy.vpp));
  for (const auto& stage : layout::make_layout(*model, *run, run->strategy).stages)
    for (std::size_t chunk = 0; chunk < stage.size(); ++chunk) out[chunk].push_back(stage[chunk].layers());
  return out;
}

RunSpec run_of(const std::string& more, ReadOptions options = {}) { return read_good(launch(more), "run.sh", options).run; }

}  // namespace

// Dimensions and totals are the published ones of the models; degrees and batches what the files state, dp = devices / (tp pp cp),
// micro-batches = global batch / (micro-batch size dp).
TEST_CASE("Megatron: Llama-3.1-70B script with a layer list", "[megatron]") {
  const Request request = read_example("megatron/pretrain_llama31_70b.sh");
  const auto& run = request.run;
  CHECK(request.format == "megatron");
  CHECK(parameters(request.model) == 70'553'706'496);
  CHECK(request.model.num_key_value_heads == 8);
  CHECK(resolve_model(request.model)->kinds[0].attention.qk_dim == 128);
  CHECK(request.model.intermediate_size == 28672);
  CHECK(request.model.vocab_size == 128256);
  CHECK(run.devices == 32);
  CHECK(run.dp == 1);
  CHECK(run.tp == 8);
  CHECK(run.pp == 4);
  CHECK_FALSE(run.vpp);
  CHECK(run.micro_batch_size == 1);
  CHECK(run.micro_batch_num == 512);
  CHECK(run.global_batch_size == 512);
  CHECK(run.seq_length == 8192);
  CHECK(run.sequence_parallel == true);
  CHECK(run.zero == ZeroLevel::none);
  CHECK(run.layers_per_chunk == std::vector<Counts>{{17, 20, 22, 21}});
  CHECK(run.recompute == Recompute::off);
  CHECK(run.param_bytes == 2.0);
  CHECK(run.softmax_bytes == 4.0);
  CHECK(run.framework == "mindspeed-llm");
  CHECK(run.origins.at("tp").where.line == 10);
  CHECK(run.origins.at("tp").where.column == 4);
  CHECK(run.origins.at("tp").where.path == "--tensor-model-parallel-size");
}

TEST_CASE("Megatron: DeepSeek-V3 script and dump say the same", "[megatron]") {
  for (const char* const file : {"megatron/pretrain_deepseek3_671b.sh", "megatron/deepseek3_671b.args.json"}) {
    INFO(file);
    const Request request = read_example(file);
    const auto& run = request.run;
    const auto& model = request.model;
    CHECK(parameters(model) == 671'026'419'200);
    CHECK(count_parameters(*resolve_model(model)).mtp == 682'636'487'424 - 671'026'419'200);
    CHECK(model.num_hidden_layers == 61);  // 64 places, three of them empty
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
    CHECK(run.devices == 512);
    CHECK(run.dp == 32);
    CHECK(run.tp == 2);
    CHECK(run.pp == 8);
    CHECK(run.ep == 32);
    CHECK(run.etp == 1);
    CHECK(run.vpp == 2);
    CHECK(run.schedule == Schedule::dualpipe_v);
    CHECK(run.micro_batch_num == 120);
    CHECK(run.global_batch_size == 3840);
    CHECK(run.zero == ZeroLevel::optimizer);
    CHECK(run.optimizer_shard == 32);
    // Four places a chunk; places 61 to 63 of the last one are empty. Lists go round and round, whatever way the schedule runs.
    CHECK(run.layers_per_chunk == std::vector<Counts>{{4, 4, 4, 4, 4, 4, 4, 4}, {4, 4, 4, 4, 4, 4, 4, 1}});
    CHECK(run.recompute == Recompute::full);
    CHECK(run.full_recompute_layers.empty());  // the first 8 of chunks of 4: all of them
    CHECK(run.framework == "mindspeed-llm");
  }
  const RunSpec script = read_example("megatron/pretrain_deepseek3_671b.sh").run;
  CHECK(std::count(script.features.begin(), script.features.end(), "swap_optimizer") == 1);
}

TEST_CASE("Megatron: Qwen3-235B-A22B with virtual stages and empty places", "[megatron]") {
  const Request request = read_example("megatron/pretrain_qwen3_235b_a22b.sh");
  const auto& run = request.run;
  CHECK(parameters(request.model) == 235'093'634'560);
  CHECK(request.model.num_hidden_layers == 94);
  CHECK(request.model.head_dim == 128);
  CHECK(request.model.qk_norm == true);
  CHECK(run.devices == 256);
  CHECK(run.dp == 64);
  CHECK(run.vpp == 3);  // 96 / 4 / 8
  CHECK(run.micro_batch_num == 16);
  CHECK(run.sequence_parallel == false);  // forced off without tensor parallelism
  CHECK(run.layers_per_chunk == std::vector<Counts>{{8, 8, 8, 8}, {8, 8, 8, 8}, {8, 8, 8, 6}});
  CHECK(run.recompute == Recompute::full);
  CHECK(run.schedule == Schedule::interleaved);
}

TEST_CASE("Megatron: Mixtral script of arrays", "[megatron]") {
  const Request request = read_example("megatron/pretrain_mixtral_8x7b.sh");
  const auto& run = request.run;
  CHECK(parameters(request.model) == 46'702'792'704);
  CHECK(request.model.moe_intermediate_size == 14336);  // not stated: as wide as the dense one
  CHECK(warns(request, "--moe-ffn-hidden-size: is not stated"));
  CHECK(run.devices == 32);  // NNODES falls back to the script's own 4
  CHECK(says(request, "SLURM_NNODES"));
  CHECK(run.dp == 8);
  CHECK(run.ep == 8);
  CHECK(run.micro_batch_num == 32);
  CHECK(run.sequence_parallel == false);
  CHECK(run.zero == ZeroLevel::optimizer);
  CHECK(layers_of(request) == std::vector<Counts>{{8, 8, 8, 8}});
  CHECK(run.framework == "megatron-core");
  CHECK(std::count(run.features.begin(), run.features.end(), "dispatcher_all_to_all") == 1);
}

TEST_CASE("Megatron: Llama-3.1-405B dump with table and loss counted as layers", "[megatron]") {
  const Request request = read_example("megatron/llama31_405b.args.json");
  const auto& run = request.run;
  CHECK(parameters(request.model) == 405'853'388'800);
  CHECK(run.dp == 8);
  CHECK(run.cp == 2);
  CHECK(run.cp_algorithm == CpAlgorithm::ring);
  CHECK(run.micro_batch_num == 64);
  CHECK(run.zero == ZeroLevel::optimizer);
  CHECK(run.optimizer_shard == 16);  // over dp x cp
  CHECK(run.recompute == Recompute::selective);
  // (126 + 2) / 8 = 16, one place of the first stage is the table, one of the last the loss.
  CHECK(run.layers_per_chunk == std::vector<Counts>{{15, 16, 16, 16, 16, 16, 16, 15}});
}

TEST_CASE("Megatron: what cannot run is refused, everything at once", "[megatron]") {
  const auto bad = read_request(std::string(ND_TEST_SOURCE_DIR) + "/tests/unit/formats/invalid/megatron_bad_vpp.sh", "", data());
  const Texts lines = problems(bad);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "error: megatron_bad_vpp.sh:4:84: --num-layers: 30 layers are no multiple of PP 4 (nearest: 28 or 32; or state the layers of the stages)");
  CHECK(lines[1].find("--num-layers-per-virtual-pipeline-stage: 30 layers are no multiple of virtual stages of 4") != std::string::npos);

  CHECK(problems(read(launch("--global-batch-size 30 --tensor-model-parallel-size 3 --fp16 --recompute-granularity some"))).size() == 3);
  CHECK(problems(read(launch("--tensor-model-parallel-size two --hiden-size 3"))) ==
        Texts{"error: run.sh:1:282: --tensor-model-parallel-size: must be a whole number, is 'two'",
              "error: run.sh:1:299: --hiden-size: unknown argument (did you mean '--hidden-size'?)"});
  const auto one = [](const std::string& more) {
    const Texts all = problems(read(launch(more)));
    REQUIRE(all.size() == 1);
    return all[0].substr(all[0].find("--"));
  };
  CHECK(one("--pipeline-model-parallel-size 4 --num-layer-list 2,2,4").find("has 3 entries for 4 stages") != std::string::npos);
  CHECK(one("--pipeline-model-parallel-size 4 --num-layer-list 2,2,2,3").find("the stages hold 9 layers, the model has 8") != std::string::npos);
  CHECK(one("--num-layer-list 8").find("needs more than one stage") != std::string::npos);
  CHECK(one("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --num-virtual-stages-per-pipeline-rank 4").find("only one of") !=
        std::string::npos);
  CHECK(one("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3").find("the 4 layers of a stage are no multiple of virtual stages of 3") !=
        std::string::npos);
  CHECK(one("--global-batch-size 33") == "--global-batch-size: 33 sequences are no multiple of micro-batch size 1 x DP 16 (nearest: 32 or 48)");
  CHECK(one("--num-experts 4 --moe-router-topk 1 --moe-ffn-hidden-size 32 --moe-layer-freq [0]*3+[1]*4").find("says it for 7 layers of 8") != std::string::npos);
  CHECK(one("--hybrid-override-pattern M-M*").find("models of this kind are not priced") != std::string::npos);
  CHECK(one("--schedules-method nano").find("is no schedule that is priced") != std::string::npos);
  CHECK(problems(read("torchrun --nproc_per_node 8 x.py --num-layers 4 --hidden-size 8 --tensor-model-parallel-size 1\n")).size() == 4);
}

TEST_CASE("Megatron: what depends on the environment is asked for", "[megatron]") {
  CHECK(problems(read(launch("--tensor-model-parallel-size $TP"))) ==
        Texts{"error: run.sh:1:282: --tensor-model-parallel-size: depends on TP, which the script does not set (set it in the script: TP=...)"});
  CHECK(problems(read(launch("--global-batch-size $((GBS * 2))")))[0].find("depends on GBS") != std::string::npos);
  CHECK(problems(read(launch("--global-batch-size $(cat batch)")))[0].find("write the value in its place") != std::string::npos);
  CHECK(run_of("--save $WHERE --log-interval $EVERY").tp == 1);  // nobody reads those
  CHECK(run_of("--swiglu $EXTRA_ARGS").tp == 1);
  const Request nodes = read_good("torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py " + std::string(kSmall));
  CHECK_FALSE(nodes.run.devices);
  CHECK(warns(nodes, "the number of devices depends on SLURM_NNODES (-d N)"));
  const Request told = read_good("torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py " + std::string(kSmall), "run.sh", {.devices = 32});
  CHECK(told.run.dp == 32);
}

TEST_CASE("Megatron: derived widths", "[megatron]") {
  CHECK(formats::megatron::derived_ffn(12288, false) == 49152);
  CHECK(formats::megatron::derived_ffn(4096, true) == 10880);  // 8 x 4096 / 3 = 10922, down to a multiple of 64
  CHECK(read_good(launch("")).model.intermediate_size == 256);
  CHECK(read_good(launch("--swiglu")).model.intermediate_size == 128);  // 8 x 64 / 3 = 170
}

TEST_CASE("Megatron: layouts", "[megatron]") {
  using formats::megatron::LayoutStage;
  using formats::megatron::parse_layout;
  const auto stages = parse_layout("E|(t|)*3,m|m||L");
  REQUIRE(stages);
  CHECK(*stages == std::vector<LayoutStage>{{0, 0, true, false}, {1, 0, false, false}, {1, 0, false, false}, {1, 0, false, false},
                                            {0, 1, false, false}, {0, 1, false, false}, {0, 0, false, false}, {0, 0, false, true}});
  // Published for DeepSeek-V3 with PP 8 and VPP 4: 2 + 22 x 2 + 1 + 7 x 2 = 61 layers in 32 chunks.
  const auto deepseek = parse_layout("Et*2|(tt|)*22t|(tt|)*7mL");
  REQUIRE(deepseek);
  CHECK(deepseek->size() == 32);
  std::int64_t layers = 0;
  for (const auto& stage : *deepseek) layers += stage.layers;
  CHECK(layers == 61);
  CHECK(parse_layout("Et\\*5\\|t\\*4L")->front().layers == 5);  // escaped in some launchers
  CHECK_FALSE(parse_layout("auto"));
  CHECK_FALSE(parse_layout("(tt"));
  CHECK_FALSE(parse_layout("(((t)*9999)*9999)*9999"));
  CHECK(run_of("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|t*5L'").layers_per_chunk == std::vector<Counts>{{3, 5}});
  const RunSpec virtual_stages = run_of("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et|ttt|tt|ttL'");
  CHECK(virtual_stages.vpp == 2);
  CHECK(virtual_stages.layers_per_chunk == std::vector<Counts>{{1, 3}, {2, 2}});
  CHECK(run_of("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 3").layers_per_chunk ==
        std::vector<Counts>{{1, 2, 2, 3}});
  CHECK(formats::megatron::pattern_list("([1]*3+[0]*1)*2") == Counts{1, 1, 1, 0, 1, 1, 1, 0});
  CHECK(formats::megatron::pattern_list("[0]+[1]*2") == Counts{0, 1, 1});
  CHECK(formats::megatron::pattern_list("[1]*99999999").empty());
  CHECK(formats::megatron::pattern_list("import os").empty());
}

TEST_CASE("Megatron: recompute", "[megatron]") {
  CHECK(run_of("").recompute == Recompute::off);
  CHECK(run_of("--recompute-activations").recompute == Recompute::selective);
  const RunSpec uniform = run_of("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2");
  CHECK(uniform.recompute == Recompute::full);
  CHECK(uniform.full_recompute_layers.empty());
  const std::string block = "--pipeline-model-parallel-size 2 --recompute-granularity full --recompute-method block --recompute-num-layers ";
  CHECK(run_of(block + "1").full_recompute_layers == Counts{1, 1});
  CHECK(run_of(block + "4").full_recompute_layers.empty());
  CHECK(run_of(block + "1 --num-virtual-stages-per-pipeline-rank 2").full_recompute_layers == Counts{2, 2});  // the first of each chunk
  CHECK(run_of(block + "1 --num-virtual-stages-per-pipeline-rank 2 --enable-recompute-layers-per-pp-rank").full_recompute_layers == Counts{1, 1});
  const RunSpec modules = run_of("--recompute-granularity selective --recompute-modules layernorm core_attn moe_act");
  CHECK(modules.recompute == Recompute::selective);
  CHECK(std::count(modules.features.begin(), modules.features.end(), "recompute_norm") == 1);
  CHECK(std::count(modules.features.begin(), modules.features.end(), "recompute_activation") == 1);
  CHECK(warns(read_good(launch("--recompute-granularity selective --recompute-modules mlp")), "recompute of 'mlp' is not priced"));
}

TEST_CASE("Megatron: precision, optimizer and sharding", "[megatron]") {
  CHECK(run_of("").compute_dtype == Dtype::bf16);
  CHECK(run_of("").optimizer == OptimizerKind::adamw);
  CHECK(run_of("--optimizer sgd").optimizer == OptimizerKind::sgd);
  CHECK(run_of("--optimizer dist_muon").optimizer == OptimizerKind::muon);
  CHECK(run_of("--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16").optimizer == OptimizerKind::adamw_bf16_states);
  CHECK(run_of("--use-precision-aware-optimizer --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8").optimizer == OptimizerKind::adamw_8bit);
  CHECK(run_of("--fp8-format hybrid").gemm_dtype == Dtype::fp8);
  CHECK(run_of("--fp4-format e2m1").gemm_dtype == Dtype::fp4);
  CHECK(run_of("--use-distributed-optimizer").zero == ZeroLevel::optimizer);
  CHECK(run_of("--use-distributed-optimizer --num-distributed-optimizer-instances 2").optimizer_shard == 8);
  CHECK(run_of("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params").zero == ZeroLevel::parameters);
  CHECK(run_of("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads").zero == ZeroLevel::gradients);
  CHECK(run_of("--use-torch-fsdp2").zero == ZeroLevel::parameters);
  const std::string fp32 = "torchrun --nproc_per_node 8 p.py --num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
                           "--micro-batch-size 1 --vocab-size 1024";
  CHECK(read_good(fp32).run.param_bytes == 4.0);
  CHECK(read_good(fp32).model.hidden_dropout == 0.1);  // the trainer's default, and said
  CHECK(says(read_good(fp32), "dropout that is not stated is 0.1"));
  CHECK(read_good(fp32).run.global_batch_size == 8);  // micro-batch size x dp
}

TEST_CASE("Megatron: context and expert parallelism", "[megatron]") {
  const std::string cp = "--context-parallel-size 2 ";
  CHECK(run_of(cp).cp_algorithm == CpAlgorithm::ring);
  CHECK(run_of(cp + "--cp-comm-type a2a").cp_algorithm == CpAlgorithm::ulysses);
  CHECK(run_of(cp + "--cp-comm-type allgather").cp_algorithm == CpAlgorithm::all_gather);
  CHECK(run_of(cp + "--context-parallel-algo ulysses_cp_algo").cp_algorithm == CpAlgorithm::ulysses);
  CHECK(run_of(cp + "--context-parallel-algo kvallgather_cp_algo").cp_algorithm == CpAlgorithm::all_gather);
  CHECK(warns(read_good(launch(cp + "--context-parallel-algo hybrid_cp_algo --ulysses-degree-in-cp 2")), "priced as a ring"));
  CHECK_FALSE(read(launch(cp + "--cp-comm-type fast")));
  const std::string moe = "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 32 --expert-model-parallel-size 4 --tensor-model-parallel-size 2 --sequence-parallel ";
  CHECK(run_of(moe).ep == 4);
  CHECK_FALSE(run_of(moe).etp);  // follows tp
  CHECK(run_of(moe + "--expert-tensor-parallel-size 1").etp == 1);
  CHECK(run_of(moe + "--moe-tp-extend-ep").ep == 8);
  CHECK(run_of(moe + "--moe-tp-extend-ep").etp == 1);
  CHECK(warns(read_good(launch("--expert-model-parallel-size 2")), "has no effect on a model without experts"));
}

TEST_CASE("Megatron: a later argument wins, unknown ones are listed", "[megatron]") {
  CHECK(run_of("--tensor-model-parallel-size 2 --tensor-model-parallel-size 4").tp == 4);
  CHECK(run_of("--tensor-model-parallel-size=2").tp == 2);
  const Request strange = read_good(launch("--quux 3 --log-interval 1"));
  CHECK(warns(strange, "not known here; what changes memory or time among them is not priced: --quux"));
  CHECK(says(strange, "no part of the price: --log-interval"));
  CHECK(warns(read_good(launch("--swap-attention")), "--swap-attention: changes memory or time and is not priced"));
  CHECK(warns(read_good(launch("--lora-r 16")), "--lora-r: changes memory or time"));
}

TEST_CASE("Megatron: lists, tables and recipes", "[megatron]") {
  const std::string list = "--num-layers 8\n--hidden-size 64\n# a comment --seq-length 7\n--num-attention-heads 4\n--seq-length 128\n--micro-batch-size 1\n--padded-vocab-size 1024\n--bf16\n";
  CHECK(read_good(list, "x.args").run.seq_length == 128);
  CHECK(read_good(list, "x.txt").model.num_hidden_layers == 8);
  const Request json = read_good(R"(["--num-layers", "8", "--hidden-size", "64", "--num-attention-heads", "4", "--seq-length", "128", "--micro-batch-size=1",
      "--padded-vocab-size", "1024", "--bf16", "--noop-layers", "6,7"])", "x.json");
  CHECK(json.model.num_hidden_layers == 6);
  CHECK(json.run.compute_dtype == Dtype::bf16);
  const Request table = read_good("log line\n[rank0]: ------------------------ arguments ------------------------\n"
                                  "[rank0]:   bf16 ............................................ True\n"
                                  "[rank0]:   cp_comm_type .................................... ['p2p']\n"
                                  "[rank0]:   hidden_size ..................................... 64\n"
                                  "[rank0]:   micro_batch_size ................................ 2\n"
                                  "[rank0]:   num_attention_heads ............................. 4\n"
                                  "[rank0]:   num_experts ..................................... None\n"
                                  "[rank0]:   num_layers ...................................... 8\n"
                                  "[rank0]:   padded_vocab_size ............................... 1024\n"
                                  "[rank0]:   seq_length ...................................... 128\n"
                                  "[rank0]:   sequence_parallel ............................... False\n"
                                  "[rank0]:   tensor_model_parallel_size ...................... 2\n"
                                  "[rank0]:   world_size ...................................... 8\n"
                                  "[rank0]: -------------------- end of arguments ---------------------\n  hidden_size .... 1\n", "train.log");
  CHECK(table.model.hidden_size == 64);
  CHECK(table.run.dp == 4);
  CHECK(table.run.origins.at("tp").where.line == 13);
  const Request recipe = read_good("ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 64\n  --num-attention-heads: 4\n  --seq-length: 128\n  --micro-batch-size: 1\n"
                                   "  --vocab-size: 1024\n  --bf16: true\n  --tensor-model-parallel-size: 2\n", "model_config.yaml");
  CHECK(recipe.run.tp == 2);
  CHECK(recipe.format == "megatron");
}

TEST_CASE("Megatron: the format is told from the content", "[megatron]") {
  CHECK(read_good(launch("")).format == "megatron");
  const auto wrong = formats::read_text(launch(""), "run.sh", data(), {"mindformers", {}});
  REQUIRE_FALSE(wrong);
  CHECK(problems(wrong)[0].find("but looks like a Megatron or MindSpeed-LLM argument list (megatron) (-f megatron") != std::string::npos);
  CHECK_FALSE(formats::read_text(launch(""), "run.sh", data(), {"hf", {}}));
  CHECK(problems(read("#!/bin/bash\necho hello\n"))[0].find("no command or variable with the arguments of a training run") != std::string::npos);
  CHECK_FALSE(read("", "run.sh"));
}

TEST_CASE("Megatron: every feature exists in the profile of its trainer", "[megatron]") {
  // Every argument that switches a feature, alone and for either trainer.
  for (const std::string trainer : {"", "--use-fused-rmsnorm "})
    for (const char* const more : {"--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 32 --moe-token-dispatcher-type allgather", "--num-experts 8 --moe-token-dispatcher-type alltoall",
                                   "--num-experts 8 --moe-token-dispatcher-type flex", "--tp-comm-overlap", "--use-ascend-mc2", "--use-ascend-coc", "--reuse-fp32-param", "--swap-optimizer",
                                   "--optimizer-cpu-offload", "--grad-reduce-in-bf16", "--main-grads-dtype bf16", "--no-gradient-accumulation-fusion", "--transformer-impl local",
                                   "--swiglu --no-bias-swiglu-fusion", "--external-cuda-graph", "--defer-embedding-wgrad-compute", "--recompute-activation-function",
                                   "--recompute-norm", "--overlap-p2p-communication", "--cross-entropy-loss-fusion", "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
                                   "--overlap-grad-reduce", "--overlap-grad-reduce --overlap-param-gather", "--use-torch-fsdp2", "--deterministic-mode",
                                   "--context-parallel-size 2 --context-parallel-algo hybrid_cp_algo", "--recompute-granularity selective --recompute-modules mla_up_proj layernorm moe_act"}) {
      INFO(trainer << more);
      const auto request = read_good(launch(trainer + more));
      const auto profile = data().framework(request.run.framework, "", request.run.features);
      if (!profile) UNSCOPED_INFO(to_text(profile.error().diagnostics.front()));
      CHECK(profile);
    }
}
