// SPDX-License-Identifier: Apache-2.0
// How launch scripts are written in the field: small reproductions of the ways arguments and shell are used in public repositories
// (Megatron-LM, MindSpeed-LLM and MindSpeed, Megatron-DeepSpeed, Pai-Megatron-Patch, slime, Apertus, Megatron-MoE-ModelZoo and their users). Names and
// values only; no text is theirs.
#include "megatron_support.hpp"

#include <algorithm>

using namespace nd;
using namespace nd::testing;

namespace {

/// What must come out. 0 = not looked at.
struct Usage {
  const char* name;
  std::string text;
  std::int64_t devices, dp, tp, pp, vpp, ep, micro_batches, layers;
};

constexpr const char* kModel =
    "--num-layers 16 --hidden-size 512 --ffn-hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --swiglu --vocab-size 32000 "
    "--normalization RMSNorm --disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights --attention-dropout 0.0 --hidden-dropout 0.0 --bf16 ";
const std::string kRun = "--micro-batch-size 1 --global-batch-size 64 ";

std::vector<Usage> usages() {
  const std::string model = kModel;
  return {
      {"quoted blocks, the last line continued into the closing quote",
       "NPUS_PER_NODE=8\nNNODES=2\nWORLD_SIZE=$(($NPUS_PER_NODE*$NNODES))\nTP=2\nPP=2\nD=\"\n    --nproc_per_node $NPUS_PER_NODE \\\n    --nnodes $NNODES\n\"\nA=\"\n    --tensor-model-parallel-size ${TP} \\\n"
       "    --pipeline-model-parallel-size ${PP} \\\n\"\npython -m torch.distributed.launch $D pretrain_gpt.py \\\n    $A \\\n    " + model + kRun + "\\\n    --distributed-backend nccl | tee logs/a.log\n",
       16, 4, 2, 2, 1, 1, 16, 16},
      {"arrays with comments, positional paths, unquoted expansion",
       "CKPT=$1 #<path>\nGPUS=8\nD=(\n    --nproc_per_node $GPUS \n    --nnodes 1\n)\nM=(\n\t" + model + "\n)\nP=(\n    --tensor-model-parallel-size 4 # per node\n    # --pipeline-model-parallel-size 9\n)\n"
       "torchrun ${D[@]} pretrain_gpt.py \\\n    ${M[@]} \\\n    ${P[@]} " + kRun + " --save $CKPT\n",
       8, 2, 4, 1, 1, 1, 32, 16},
      {"defaults from the environment in every variable",
       "TP=${TP:-2}\nPP=${PP:-4}\nMBS=${MBS:-1}\nGBS=${GBS:-64}\nN=${SLURM_NNODES:-\"4\"}\ntorchrun --nproc-per-node 8 --nnodes ${N} train.py " + model +
           "--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} --micro-batch-size ${MBS} --global-batch-size ${GBS}\n",
       32, 4, 2, 4, 1, 1, 16, 16},
      {"arguments added under a test",
       "VPP=2\nPP=4\nT=\"" + model + kRun + "--pipeline-model-parallel-size ${PP}\"\nif [ ${VPP} -gt 1 ]; then\n    T=\"$T --num-virtual-stages-per-pipeline-rank ${VPP}\"\nfi\n"
       "if [[ ! -z ${PP_FIRST} && ! -z ${PP_LAST} ]]; then\n    T=\"$T --decoder-first-pipeline-num-layers ${PP_FIRST}\"\nfi\ntorchrun --nproc_per_node=8 pretrain_gpt.py $T\n",
       8, 2, 1, 4, 2, 1, 32, 16},
      {"an array grown under tests",
       "DTYPE=\"fp8\"\nA=()\nif [[ \"$DTYPE\" == \"fp8\" ]]; then\n    A+=(\n        \"--fp8-format hybrid\"\n        \"--fp8-amax-history-len 1024\"\n    )\nfi\nB=(--tensor-model-parallel-size 2)\nB+=(\"${A[@]}\")\n"
       "if [ ! -f \"$SCRIPT\" ]; then\n    echo missing\n    exit 1\nfi\ntorchrun --nproc_per_node 8 pretrain_gpt.py " + model + kRun + "${B[@]}\nset +x",
       8, 4, 2, 1, 1, 1, 16, 16},
      {"sizes of a family chosen by case",
       "MODEL_SIZE=small\ncase $MODEL_SIZE in\n  \"small\") NUM_LAYERS=16; EP=4;;\n  \"large\") NUM_LAYERS=64; EP=64;;\n  *) echo unknown; exit 1;;\nesac\ntorchrun --nproc_per_node 8 p.py " + model + kRun +
           "--num-layers $NUM_LAYERS --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --expert-model-parallel-size $EP\n",
       8, 8, 1, 1, 1, 4, 8, 16},
      {"a command kept in a variable and evaluated",
       "cmd=\"torchrun --nproc_per_node 8 pretrain_gpt.py \\\n " + model + " \\\n " + kRun + "\n --tensor-model-parallel-size 8\"\necho $cmd\neval $cmd\n", 8, 1, 8, 1, 1, 1, 64, 16},
      {"a job script: options for the scheduler, the command in quotes",
       "#!/bin/bash\n#SBATCH --nodes=2\nOPT=\" " + model + kRun + " --tensor-model-parallel-size 4 \"\nrun_cmd=\"python -u ${DIR}/pretrain_gpt.py ${OPT}\"\nWORLD_SIZE=16\nsrun -l --container-image img sh -c \"${run_cmd}\"\nset +x\n",
       16, 4, 4, 1, 1, 1, 16, 16},
      {"a here-document that would be submitted",
       "A=(" + model + kRun + " --tensor-model-parallel-size 2)\nTRAINING_CMD=\"\ncd x;\npython y/pretrain_gpt.py ${A[@]}\"\nWORLD_SIZE=8\nset +e\nsbatch <<EOF\n#!/bin/bash\nsrun bash -c \"${TRAINING_CMD}\"\nEOF\n", 8, 4, 2, 1, 1, 1, 16, 16},
      {"deepspeed launcher", "deepspeed --num_gpus 8 --num_nodes 2 pretrain_gpt.py " + model + kRun + "--tensor-model-parallel-size 2 --deepspeed-activation-checkpointing\n", 16, 8, 2, 1, 1, 1, 8, 16},
      {"mpirun", "mpirun -np 16 --allow-run-as-root python pretrain_gpt.py " + model + kRun + "--tensor-model-parallel-size 2\n", 16, 8, 2, 1, 1, 1, 8, 16},
      {"a data conversion before the training",
       "python tools/preprocess_data.py --input a.json --vocab-size 3 --workers 4\ntorchrun --nproc_per_node 8 pretrain_gpt.py " + model + kRun + "\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"a patched program with another name and a path in quotes", "torchrun --nproc_per_node 8 \"$ROOT/train/pretrain_qwen.py\" " + model + kRun + "\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"flags with equals signs and underscores in the launcher", "torchrun --nnodes=\"2\" --nproc_per_node=\"8\" --node_rank=\"${RANK}\" p.py " + model + kRun + "--pipeline-model-parallel-size=2\n", 16, 8, 1, 2, 1, 1, 8, 16},
      {"places without layers and virtual stages",
       "VPP=2\ntorchrun --nproc_per_node 8 pretrain_gpt.py " + model + kRun + "--num-layers 16 --noop-layers 14,15 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage ${VPP} --use-fused-rmsnorm\n", 8, 2, 1, 4, 2, 1, 32, 14},
      {"experts over the tensor parallel ranks, frequencies of -1",
       "torchrun --nproc_per_node 8 pretrain_gpt.py " + model + kRun +
           "--tensor-model-parallel-size 2 --sequence-parallel --num-experts 16 --moe-router-topk 2 --moe-ffn-hidden-size 256 --moe-intermediate-size 256 --expert-model-parallel-size 4 --moe-tp-extend-ep "
           "--moe-layer-freq -1 --first-k-dense-replace -1 --moe-token-dispatcher-type alltoall_seq --moe-permutation-async-comm --use-fused-swiglu\n", 8, 4, 2, 1, 1, 8, 16, 16},
      {"a layer pattern in quotes", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --moe-layer-freq \"([0]*1+[1]*15)\" --expert-model-parallel-size 2\n", 8, 8, 1, 1, 1, 2, 8, 16},
      {"a layer pattern without quotes", "A=(--moe-layer-freq [0]*3+[1]*13)\ntorchrun --nproc_per_node 8 p.py " + model + kRun + "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 ${A[@]}\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"a pipeline layout", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout \"Et*3|(tt|)*6tL\"\n", 8, 2, 1, 4, 2, 1, 32, 16},
      {"first and last stage stated", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 5\n", 8, 2, 1, 4, 1, 1, 32, 16},
      {"a window as a Python pair", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--window-size '(4096, 0)' --window-attn-skip-freq 4\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"a gated delta hybrid",
       "torchrun --nproc_per_node 8 p.py " + model + kRun +
           "--experimental-attention-variant gated_delta_net --linear-attention-freq 4 --linear-conv-kernel-dim 4 --linear-key-head-dim 64 --linear-value-head-dim 64 --linear-num-key-heads 4 --linear-num-value-heads 8 --attention-output-gate\n",
       8, 8, 1, 1, 1, 1, 8, 16},
      {"latent attention by its old names",
       "torchrun --nproc_per_node 8 p.py " + model + kRun + "--multi-head-latent-attention --qk-rope-head-dim 64 --qk-nope-head-dim 128 --q-lora-rank 256 --kv-lora-rank 512 --v-head-dim 128 --mla-mm-split\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"hybrid context parallelism with the memory features of MindSpeed",
       "CP=4\ntorchrun --nproc_per_node 8 p.py " + model + kRun +
           "--context-parallel-size ${CP} --context-parallel-algo hybrid_cp_algo --ulysses-degree-in-cp 2 --use-cp-send-recv-overlap --recompute-activation-function --recompute-activation-function-num-layers 2 --swap-attention "
           "--optimizer-selection fused_torch_adamw --use-ascend-mc2 --reuse-fp32-param\n", 8, 2, 1, 1, 1, 1, 32, 16},
      {"block recompute counted per rank", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 --recompute-granularity full --recompute-method block --enable-recompute-layers-per-pp-rank --recompute-num-layers 3\n", 8, 4, 1, 2, 4, 1, 16, 16},
      {"narrow optimizer states", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--use-distributed-optimizer --use-precision-aware-optimizer --main-grads-dtype fp32 --main-params-dtype fp32 --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --overlap-grad-reduce --overlap-param-gather\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"states in host memory", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d --use-precision-aware-optimizer --optimizer-offload-fraction 1.0\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"fully sharded", "USE=${USE_MEGATRON_FSDP:-1}\nS=${SHARDING_STRATEGY:-\"optim_grads_params\"}\nA=()\nif [ \"${USE}\" = 1 ]; then\n unset CUDA_DEVICE_MAX_CONNECTIONS\n A=(\n \"${A[@]}\"\n --use-megatron-fsdp\n --data-parallel-sharding-strategy ${S}\n --no-gradient-accumulation-fusion\n --fsdp-double-buffer\n )\nfi\n"
       "torchrun --nproc_per_node 8 p.py " + model + kRun + "${A[@]}\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"batch ramp", "torchrun --nproc_per_node 8 p.py " + model + kRun + "--rampup-batch-size 16 16 5859375\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"old activation checkpointing and fp16", "torchrun --nproc_per_node 8 p.py --num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt --fp16 "
       "--activations-checkpoint-method uniform --DDP-impl local --loss-scale 8192 " + kRun + "\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"a tokenizer of GPT-2 by its type", "torchrun --nproc_per_node 8 p.py --num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --tokenizer-type GPT2BPETokenizer --bf16 " + kRun + "\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"low-rank tuning", "torchrun --nproc_per_node 8 posttrain_gpt.py " + model + kRun + "--finetune --stage sft --is-instruction-dataset --variable-seq-lengths --lora-r 16 --lora-alpha 32 --lora-fusion --lora-target-modules linear_qkv linear_proj linear_fc1 linear_fc2\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"a multi-word specification", "torchrun --nproc_per_node 8 p.py --spec tasks.models.spec.qwen3_spec layer_spec " + model + kRun + "\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"selective modules and experts in a flexible dispatcher",
       "torchrun --nproc_per_node 8 p.py " + model + kRun + "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --moe-grouped-gemm --moe-token-dispatcher-type flex --moe-enable-deepep --recompute-granularity selective --recompute-modules mla_up_proj layernorm "
       "--mtp-num-layers 1 --mtp-loss-scaling-factor 0.1\n", 8, 8, 1, 1, 1, 1, 8, 16},
      {"Windows line ends", "TP=2\r\ntorchrun --nproc_per_node 8 p.py \\\r\n --tensor-model-parallel-size ${TP} \\\r\n " + model + kRun + "\r\n", 8, 4, 2, 1, 1, 1, 16, 16},
  };
}

}  // namespace

TEST_CASE("Megatron: arguments as the field writes them", "[megatron]") {
  const auto all = usages();
  CHECK(all.size() >= 30);
  for (const auto& usage : all) {
    INFO(usage.name);
    const Request request = read_good(usage.text);
    const auto& run = request.run;
    CHECK(run.devices == usage.devices);
    CHECK(run.dp == usage.dp);
    CHECK(run.tp == usage.tp);
    CHECK(run.pp == usage.pp);
    CHECK(run.vpp.value_or(1) == usage.vpp);
    CHECK(run.ep == usage.ep);
    CHECK(run.micro_batch_num == usage.micro_batches);
    CHECK(request.model.num_hidden_layers == usage.layers);
    // Whatever the price needs is stated or named.
    const auto model = resolve_model(request.model);
    REQUIRE(model);
    const auto profile = data().framework(run.framework, "", run.features);
    REQUIRE(profile);
    const auto resolved = resolve_run(run, *model, *profile);
    if (!resolved) UNSCOPED_INFO(to_text(resolved.error().diagnostics.front()));
    REQUIRE(resolved);
    for (const auto& field : resolved->defaulted) FAIL_CHECK("nobody states " << field);
  }
}

TEST_CASE("Megatron: facts of the field's ways", "[megatron]") {
  const auto find = [](const std::string& name) {
    for (const auto& usage : usages())
      if (usage.name == name) return read_good(usage.text);
    FAIL(name);
    return Request{};
  };
  CHECK(find("a layer pattern in quotes").model.first_k_dense_replace == 1);
  CHECK(find("a layer pattern without quotes").model.first_k_dense_replace == 3);
  CHECK(find("a pipeline layout").run.layers_per_chunk == std::vector<Counts>{{3, 2, 2, 2}, {2, 2, 2, 1}});
  CHECK(find("first and last stage stated").run.layers_per_chunk == std::vector<Counts>{{3, 4, 4, 5}});
  CHECK(find("a window as a Python pair").model.sliding_window == 4097);
  CHECK(find("a gated delta hybrid").model.full_attention_interval == 4);
  CHECK(find("latent attention by its old names").model.kv_lora_rank == 512);
  CHECK(find("block recompute counted per rank").run.full_recompute_layers == Counts{3, 3});
  CHECK(find("narrow optimizer states").run.optimizer == OptimizerKind::adamw_bf16_states);
  CHECK(find("fully sharded").run.zero == ZeroLevel::parameters);
  CHECK(find("old activation checkpointing and fp16").run.recompute == Recompute::full);
  CHECK(find("old activation checkpointing and fp16").run.compute_dtype == Dtype::fp16);
  CHECK(find("old activation checkpointing and fp16").model.vocab_size == 50257);
  CHECK(find("old activation checkpointing and fp16").model.learned_positions == true);
  CHECK(find("an array grown under tests").run.gemm_dtype == Dtype::fp8);
  CHECK(warns(find("low-rank tuning"), "--lora-r"));
  CHECK(warns(find("hybrid context parallelism with the memory features of MindSpeed"), "--swap-attention"));
  CHECK(find("hybrid context parallelism with the memory features of MindSpeed").run.framework == "mindspeed-llm");
  CHECK(find("a tokenizer of GPT-2 by its type").model.tie_word_embeddings == true);
  CHECK(says(find("batch ramp"), "the full batch is priced"));
  // A file of a model's arguments that others source: no run, and said.
  const auto model_only = read("MODEL_ARGS=(\n   --swiglu\n   --num-layers 28\n   --hidden-size 2048\n   --num-attention-heads 16\n   --vocab-size 151936\n)\n");
  for (const auto& line : problems(model_only)) UNSCOPED_INFO(line);
  CHECK(problems(model_only).size() == 2);
  // A file of a template, filled by the caller's environment.
  const auto open = problems(read("export PARAMS=\" ${EXTRA} \\\n\t--tensor-model-parallel-size ${TP} \\\n --num-layers ${NLS} --hidden-size ${HS} --num-attention-heads ${NAH} --micro-batch-size ${MBS} "
                                  "--seq-length 2048 --vocab-size 3 --fp16 \"\n"));
  CHECK(open.size() == 5);
  for (const auto& line : open) CHECK(line.find("which the script does not set") != std::string::npos);
}
