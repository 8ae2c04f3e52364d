// SPDX-License-Identifier: Apache-2.0
#include "unit/ops/ops_support.hpp"

using namespace nd;
using namespace nd::test;

namespace {

/// Korthikanti et al. 2022 (arXiv 2205.05198): dropout 0.1, attention not fused, GELU.
ResolvedRun dropout_run() {
  ResolvedRun run;
  run.hidden_dropout = run.attention_dropout = 0.1;
  return run;
}
FrameworkProfile unfused() {
  FrameworkProfile profile;
  profile.memory.flash_attention = false;
  return profile;
}

constexpr double kSequence = 2048, kBatch = 4, kHidden = 6144, kHeads = 64;
constexpr double kSbh = kSequence * kBatch * kHidden;

LayerLedger korthikanti(int tp, bool sequence_parallel) {
  const ResolvedModel model = resolved(gpt(6144, 64, 2, 51200));
  return layer_ledger(model, model.kinds[0], dropout_run(), unfused(), shape_of(2048, 4, tp, sequence_parallel));
}

}  // namespace

TEST_CASE("bytes per layer of Korthikanti et al., to the byte", "[ops]") {
  const double scores = 5.0 * kHeads * kSequence * kSequence * kBatch;  // sbh * 5as/h
  CHECK(korthikanti(1, false).saved_bytes(Recompute::off) == kSbh * 34.0 + scores);  // equation 1
  for (const int t : {2, 8}) {
    CAPTURE(t);
    CHECK(korthikanti(t, false).saved_bytes(Recompute::off) == kSbh * (10.0 + 24.0 / t) + scores / t);  // equation 2
    CHECK(korthikanti(t, true).saved_bytes(Recompute::off) == (kSbh * 34.0 + scores) / t);             // equation 4
  }
}

TEST_CASE("selective recompute drops the scores, full keeps the layer's input", "[ops]") {
  CHECK(korthikanti(1, false).saved_bytes(Recompute::selective) == kSbh * 34.0);
  CHECK(korthikanti(8, true).saved_bytes(Recompute::selective) == kSbh * 34.0 / 8.0);  // equation 6
  CHECK(korthikanti(1, false).saved_bytes(Recompute::full) == 2.0 * kSbh);
  CHECK(korthikanti(8, false).saved_bytes(Recompute::full) == 2.0 * kSbh);
  CHECK(korthikanti(8, true).saved_bytes(Recompute::full) == 2.0 * kSbh / 8.0);

  FrameworkProfile whole = unfused();
  whole.memory.recompute_keeps_layer_input_sharded = false;
  const ResolvedModel model = resolved(gpt(6144, 64, 2, 51200));
  CHECK(layer_ledger(model, model.kinds[0], {}, whole, shape_of(2048, 4, 8, true)).saved_bytes(Recompute::full) == 2.0 * kSbh);
}

TEST_CASE("without dropout there are no masks and one copy of the probabilities", "[ops]") {
  const ResolvedModel model = resolved(gpt(6144, 64, 2, 51200));
  const LayerLedger ledger = layer_ledger(model, model.kinds[0], {}, unfused(), shape_of(2048, 4));
  CHECK(ledger.saved_bytes(Recompute::off) == kSbh * 32.0 + 2.0 * kHeads * kSequence * kSequence * kBatch);  // 34 - two masks of 1
}

TEST_CASE("a gated layer with grouped heads and fused attention, by hand", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  // Per token: norm inputs and outputs 4 * 2 * 4096; Q and output 2 * 2 * 4096; K and V 2 * 2 * 1024; statistics 4 * 32; FFN 6 * 14336.
  constexpr double kRegion = 32768, kShard = 16384 + 4096 + 128 + 86016;
  const auto bytes = [&](const FrameworkProfile& profile, const LayerShape& shape, Recompute mode = Recompute::off) {
    return layer_ledger(model, model.kinds[0], {}, profile, shape).saved_bytes(mode);
  };
  CHECK(bytes({}, shape_of(8192, 1)) == 8192 * (kRegion + kShard));
  CHECK(bytes({}, shape_of(8192, 1, 4)) == 8192 * (kRegion + kShard / 4));
  CHECK(bytes({}, shape_of(8192, 1, 4, true)) == 8192 * (kRegion + kShard) / 4);
  LayerShape cp = shape_of(8192, 1, 4, true);
  cp.cp = 2;
  CHECK(bytes({}, cp) == 4096 * (kRegion + kShard) / 4);

  FrameworkProfile profile;
  profile.memory.swiglu_bytes = 8;  // + 2 * 14336
  CHECK(bytes(profile, shape_of(8192, 1)) == 8192 * (kRegion + kShard + 28672));
  profile = {};
  profile.memory.rotary_copies = true;  // + 2 * (4096 + 1024)
  CHECK(bytes(profile, shape_of(8192, 1)) == 8192 * (kRegion + kShard + 10240));
  profile = {};
  profile.memory.gathered_inputs_kept = true;  // half of the region is not divided
  CHECK(bytes(profile, shape_of(8192, 1, 4, true)) == 8192 * (kRegion / 8 + kRegion / 2 + kShard / 4));
  profile = {};
  profile.memory.softmax_statistics_bytes = 64;
  CHECK(bytes(profile, shape_of(8192, 1)) == 8192 * (kRegion + kShard + 60 * 32));
  profile = {};
  profile.memory.selective_drops_activation = profile.memory.selective_drops_norm = true;
  // drops statistics 128, the product 2 * 14336 and the norm outputs 2 * 2 * 4096
  CHECK(bytes(profile, shape_of(8192, 1), Recompute::selective) == 8192 * (kRegion + kShard - 128 - 28672 - 16384));
}

TEST_CASE("fp32 activations are twice as wide", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  ResolvedRun run;
  run.compute_dtype = Dtype::fp32;
  // All but the statistics (4 * 32 bytes a token) doubles.
  const double half = layer_ledger(model, model.kinds[0], {}, {}, shape_of(1024, 1)).saved_bytes(Recompute::off);
  CHECK(layer_ledger(model, model.kinds[0], run, {}, shape_of(1024, 1)).saved_bytes(Recompute::off) == 2 * half - 128 * 1024);
}

TEST_CASE("fused attention leaves no term that grows with the square of the sequence", "[ops]") {
  for (const char* name : {"llama-3.1-8b", "deepseek-v3", "gpt-oss-20b", "qwen3-next-80b-a3b"}) {
    const ResolvedModel model = preset(name);
    for (const LayerKind& kind : model.kinds) {
      const double at_4k = layer_ledger(model, kind, {}, {}, shape_of(4096, 1)).saved_bytes(Recompute::off);
      const double at_128k = layer_ledger(model, kind, {}, {}, shape_of(131072, 1)).saved_bytes(Recompute::off);
      CHECK(at_128k == Approx(32 * at_4k).epsilon(1e-12));
    }
  }
}

TEST_CASE("latent attention keeps latents, wide heads and narrow values", "[ops]") {
  const ResolvedModel model = preset("deepseek-v3");  // q 1536, c 512, n 128, r 64, v 128, 128 heads
  FrameworkProfile profile;
  LayerLedger ledger = layer_ledger(model, model.kinds[0], {}, profile, shape_of(4096, 1, 4, true));
  CHECK(saved_of(ledger, "latents") == 4096.0 / 4 * (4 * 1536 + 4 * 512 + 2 * 64));
  CHECK(saved_of(ledger, "q") == 4096.0 / 4 * 2 * 128 * 192);
  CHECK(saved_of(ledger, "k and v") == 4096.0 / 4 * 2 * 128 * (192 + 128));
  CHECK(saved_of(ledger, "output") == 4096.0 / 4 * 2 * 128 * 128);
  CHECK(saved_of(ledger, "up-projected k and v") == 0);
  profile.memory.mla_keeps_up_projection = true;
  ledger = layer_ledger(model, model.kinds[0], {}, profile, shape_of(4096, 1, 4, true));
  CHECK(saved_of(ledger, "up-projected k and v") == 4096.0 / 4 * 2 * 128 * (128 + 128));
}

TEST_CASE("expert buffers are there on one rank and follow their degrees", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");  // h 4096, f_e 14336, 8 experts, 2 per token
  const auto ledger_of = [&](LayerShape shape, const ResolvedRun& run = {}, const FrameworkProfile& profile = {}) {
    return layer_ledger(model, model.kinds[0], run, profile, shape);
  };
  LayerShape shape = shape_of(4096, 1);
  LayerLedger ledger = ledger_of(shape);
  CHECK(saved_of(ledger, "dispatched inputs") == 4096.0 * 2 * 4096 * 2);
  CHECK(saved_of(ledger, "expert outputs") == 4096.0 * 2 * 4096 * 2);
  CHECK(saved_of(ledger, "activation inputs") == 4096.0 * 4 * 14336 * 2);
  CHECK(saved_of(ledger, "activation output") == 4096.0 * 2 * 14336 * 2);
  CHECK(saved_of(ledger, "logits and probabilities") == 4096.0 * 8 * 8);

  shape = shape_of(4096, 1, 4, true);
  shape.ep = 8;
  CHECK(saved_of(ledger_of(shape), "dispatched inputs") == 4096.0 * 2 * 4096 * 2 / 4);  // tp ranks share the tokens
  shape.etp = 4;                                                                          // ... and gather them again
  CHECK(saved_of(ledger_of(shape), "dispatched inputs") == 4096.0 * 2 * 4096 * 2);
  CHECK(saved_of(ledger_of(shape), "activation output") == 4096.0 * 2 * 14336 * 2 / 4);

  ResolvedRun run;
  run.expert_imbalance = 1.25;
  CHECK(saved_of(ledger_of(shape, run), "dispatched inputs") == 1.25 * 4096.0 * 2 * 4096 * 2);
  run.capacity_factor = 1.5;  // padding fixes the load of every rank
  CHECK(saved_of(ledger_of(shape, run), "dispatched inputs") == 1.5 * 4096.0 * 2 * 4096 * 2);
  run.capacity_factor = 1.0;
  shape.ep = 1;  // all experts on the rank: nothing to be unbalanced
  CHECK(saved_of(ledger_of(shape, run), "dispatched inputs") == 4096.0 * 2 * 4096 * 2);

  FrameworkProfile gathers;
  gathers.memory.dispatcher = Dispatcher::all_gather;
  shape = shape_of(4096, 1, 2, true);
  shape.ep = 4;
  CHECK(saved_of(ledger_of(shape, {}, gathers), "gathered hidden states") == 4096.0 * 2 * 4096 * 4 / 2);
}

TEST_CASE("working set of the backward of one layer", "[ops]") {
  const ResolvedModel llama = preset("llama-3.1-8b");
  // T * [(2 + 4) f/t + 4h]
  CHECK(layer_ledger(llama, llama.kinds[0], {}, {}, shape_of(8192, 1, 2)).working_set_bytes == 8192.0 * (6 * 14336 / 2 + 4 * 4096));
  const ResolvedModel plain = resolved(gpt(1024, 16, 2, 1000));
  // T * [4 f/t + 4h]
  CHECK(layer_ledger(plain, plain.kinds[0], {}, {}, shape_of(512, 2)).working_set_bytes == 1024.0 * (4 * 4096 + 4 * 1024));
}

TEST_CASE("table, head and logits", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  FrameworkProfile profile;
  profile.can.vocab_padding = 128;
  CHECK(padded_vocabulary(model, profile, 8) == 129024);  // 126 * 1024
  CHECK(padded_vocabulary(model, profile, 1) == 128256);
  CHECK(logit_elements(model, profile, shape_of(8192, 2, 8)) == 16384.0 * 129024 / 8);
  LayerShape cp = shape_of(8192, 1);
  cp.cp = 4;
  CHECK(logit_elements(model, profile, cp) == 2048.0 * 128256);

  const LayerLedger head = head_ledger(model, {}, profile, shape_of(8192, 1, 4, true), true);
  CHECK(head.saved_bytes(Recompute::full) == 8192.0 * 4 * 4096 / 4);  // 4h per token of the shard, whatever the mode
  CHECK(head.parameter_elements(ParameterClass::tensor) == 4096.0 * 128512 / 4);  // 251 * 512
  CHECK(head_ledger(model, {}, profile, shape_of(8192, 1, 4), false).parameter_elements(ParameterClass::tensor) == 0);

  ResolvedRun run;
  run.hidden_dropout = 0.1;
  const LayerLedger table = embedding_ledger(model, run, profile, shape_of(8192, 1, 4, true));
  CHECK(table.saved_bytes(Recompute::full) == 8 * 8192.0 + 8192.0 * 4096 / 4);  // ids and mask
}

TEST_CASE("experts in turn: temporaries of one of them", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");  // f_e 14336, 8 experts, 2 per token
  FrameworkProfile profile;
  profile.memory.swiglu_bytes = 8;
  profile.memory.layer_working_set_ffn = 16;
  profile.memory.layer_working_set_hidden = 0;
  const auto working_set = [&] { return layer_ledger(model, model.kinds[0], {}, profile, shape_of(4096, 1)).working_set_bytes; };
  CHECK(working_set() == 4096.0 * 16 * 14336 * 2);
  profile.memory.experts_in_turn = true;
  CHECK(working_set() == 4096.0 * 16 * 14336 * 2 / 8);
  // The recomputed layer is in the profile's 16 bytes: its 8 are there for all experts.
  profile.memory.working_set_covers_recompute = true;
  CHECK(working_set() == 4096.0 * (8 + 8 / 8.0) * 14336 * 2);
}

TEST_CASE("recompute of everything but the MoE block keeps the routed rows", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");
  FrameworkProfile profile;
  const auto full = [&] { return layer_ledger(model, model.kinds[0], {}, profile, shape_of(4096, 1)).saved_bytes(Recompute::full); };
  CHECK(full() == 4096.0 * 2 * 4096);
  profile.memory.full_keeps_experts = true;
  CHECK(full() == 4096.0 * (2 * 4096 + 2 * (2 * 4096 + 6 * 14336 + 2 * 4096)));
}

TEST_CASE("gathering dispatchers collect over ep and expert tensor parallelism together", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");
  FrameworkProfile gathers;
  gathers.memory.dispatcher = Dispatcher::all_gather;
  LayerShape shape = shape_of(4096, 1, 2, true);
  shape.ep = 4;
  shape.etp = 2;
  // Each rank has 4096/2 tokens of 2h bytes; ep 4 x etp 2 ranks put theirs together.
  CHECK(saved_of(layer_ledger(model, model.kinds[0], {}, gathers, shape), "gathered hidden states") == 4096.0 / 2 * 2 * 4096 * 4 * 2);
}

TEST_CASE("operator policies of selective recompute: every second product again, routed experts whole", "[ops]") {
  FrameworkProfile policy;
  MemoryProfile& memory = policy.memory;
  memory.selective_drops_norm = memory.selective_drops_activation = true;
  memory.selective_every_second_product = memory.selective_drops_experts = true;
  memory.rotary_copies = true;
  const ResolvedModel llama = preset("llama-3.1-8b");  // h 4096, 32 heads and 8 KV heads of 128, f 14336
  const LayerLedger dense = layer_ledger(llama, llama.kinds[0], {}, policy, shape_of(8192, 1));
  // Kept: two norm inputs 4h, Q 2ad, V 2gd, attention output 2ad, gate 2f. Again: norm outputs, K, rotated copies, statistics, up, product.
  CHECK(dense.saved_bytes(Recompute::selective) == 8192.0 * (4 * 4096 + 2 * 4096 + 2 * 1024 + 2 * 4096 + 2 * 14336));
  // Nothing is gained or lost without recompute: 8h + Q, K, V, rotated Q and K, output, statistics 4a, 6f.
  CHECK(dense.saved_bytes(Recompute::off) == 8192.0 * (8 * 4096 + 2 * (4096 + 2048) + 2 * (4096 + 1024) + 2 * 4096 + 4 * 32 + 6 * 14336));

  const ResolvedModel mixtral = preset("mixtral-8x7b");
  const LayerLedger moe = layer_ledger(mixtral, mixtral.kinds[0], {}, policy, shape_of(4096, 1));
  for (const char* name : {"dispatched inputs", "activation inputs", "activation output", "expert outputs"})
    for (const SavedTensor& tensor : moe.saved)
      if (tensor.name == name) CHECK_FALSE(tensor.kept[static_cast<std::size_t>(Recompute::selective)]);
  bool again = false;
  for (std::size_t i = 0; i < moe.gemms.size(); ++i)
    if (moe.gemms[i].kind == GemmClass::expert) again = again || moe.selective_gemms[i];
  CHECK(again);  // what is dropped is computed again: it costs time too
}

TEST_CASE("a distribution of tokens over experts decides what the busiest rank computes and keeps", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");  // 8 experts, 2 per token
  LayerShape shape = shape_of(4096, 1);
  shape.ep = 4;  // two experts a rank
  ResolvedRun run;
  run.expert_imbalance = 3;  // what the list says goes first
  run.expert_load = {0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05};
  const LayerLedger ledger = layer_ledger(model, model.kinds[0], run, {}, shape);
  // The first rank gets half of all tokens, 4 ranks: twice the mean.
  CHECK(saved_of(ledger, "dispatched inputs") == Approx(2.0 * 4096 * 2 * 4096 * 2).epsilon(1e-12));
  for (const Gemm& gemm : ledger.gemms)
    if (gemm.kind == GemmClass::expert) CHECK(gemm.m * gemm.count == Approx(2.0 * 4096 * 2).epsilon(1e-12));
  run.expert_load.assign(8, 0.125);
  CHECK(saved_of(layer_ledger(model, model.kinds[0], run, {}, shape), "dispatched inputs") == Approx(4096.0 * 2 * 4096 * 2).epsilon(1e-12));
  run.expert_load.assign(16, 1.0 / 16);  // a list for another layer kind does not apply
  CHECK(saved_of(layer_ledger(model, model.kinds[0], run, {}, shape), "dispatched inputs") == Approx(3.0 * 4096 * 2 * 4096 * 2).epsilon(1e-12));
}

TEST_CASE("activations above the keep limit are on the host and come back for one layer", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");
  FrameworkProfile profile;
  LayerShape shape = shape_of(4096, 1);
  shape.ep = 8;
  ResolvedRun run;
  run.expert_imbalance = 1.5;
  const LayerLedger all = layer_ledger(model, model.kinds[0], run, profile, shape);
  run.expert_keep_limit = 0.6;  // of the mean load: 0.6 / 1.5 of what the busiest rank has
  const LayerLedger part = layer_ledger(model, model.kinds[0], run, profile, shape);
  const double rows = 1.5 * 4096 * 2, routed = rows * (2 * 4096 + 6 * 14336);  // inputs 2h, activation 6f; the outputs stay
  CHECK(part.saved_bytes(Recompute::off) == Approx(all.saved_bytes(Recompute::off) - 0.6 * routed).epsilon(1e-12));
  CHECK(part.working_set_bytes == Approx(all.working_set_bytes + 0.6 * routed).epsilon(1e-12));
  run.expert_keep_limit = 2;  // never reached
  CHECK(layer_ledger(model, model.kinds[0], run, profile, shape).saved_bytes(Recompute::off) == all.saved_bytes(Recompute::off));
}

TEST_CASE("grouped experts are one tensor, experts in turn one each", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");  // 8 experts, h 4096, f_e 14336
  LayerShape shape = shape_of(4096, 1);
  shape.ep = 2;
  FrameworkProfile profile;
  const auto largest = [&] {
    double out = 0;
    for (const ParameterBlock& block : layer_ledger(model, model.kinds[0], {}, profile, shape).parameters)
      if (block.sharding == ParameterClass::expert) out = std::max(out, block.largest_tensor);
    return out;
  };
  CHECK(largest() == 4 * 4096.0 * 2 * 14336);  // gate and up of the four local experts
  profile.memory.experts_in_turn = true;
  CHECK(largest() == 4096.0 * 2 * 14336);
}
