// SPDX-License-Identifier: Apache-2.0
#include "unit/ops/ops_support.hpp"

using namespace nd;
using namespace nd::test;

TEST_CASE("model FLOPs of a GPT are those of Narayanan et al.", "[ops]") {
  // 72 L h^2 (1 + s/(6h) + V/(12 L h)) per token without recompute (arXiv 2104.04473, equation 3 holds 96 with it).
  const double layers = 24, hidden = 2048, vocabulary = 51200, sequence = 2048;
  const ResolvedModel model = resolved(gpt(2048, 16, 24, 51200));
  const double wanted = 72 * layers * hidden * hidden * (1 + sequence / (6 * hidden) + vocabulary / (12 * layers * hidden));
  CHECK(model_flops_per_token(model, 2048, false).value == Approx(wanted).epsilon(1e-12));
  // Half the square: the term s/(6h) halves.
  CHECK(model_flops_per_token(model, 2048, true).value == Approx(wanted - 72 * layers * hidden * sequence / 12).epsilon(1e-12));
}

TEST_CASE("model FLOPs of a Llama are 6N + 12Lhs", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  const double norms = 65.0 * 4096;
  const double products = static_cast<double>(count_parameters(model).total) - 128256.0 * 4096 - norms;  // the lookup multiplies nothing
  CHECK(model_flops_per_token(model, 8192, false).value == Approx(6 * products + 12.0 * 32 * 4096 * 8192).epsilon(1e-12));
}

TEST_CASE("model FLOPs of DeepSeek-V3 follow its active parameters", "[ops]") {
  ModelSpec spec = *DataStore(ND_TEST_DATA_DIR).model("deepseek-v3");
  spec.mtp_depth = 0;
  const ResolvedModel model = resolved(spec);
  // Of 37.55e9 active elements the table, 61 * (2 * 7168 + 1536 + 512) norms, one more norm and 58 * 256 router biases multiply nothing.
  const double products = 37552297472.0 - 129280.0 * 7168 - 61.0 * (2 * 7168 + 2048) - 7168 - 58.0 * 256;
  const double attention = 61.0 * 128 * (192 + 128) * 4096 * 2 / 2;  // forward, half the square
  CHECK(model_flops_per_token(model, 4096, true).value == Approx(6 * products + 3 * attention).epsilon(1e-12));
  spec.mtp_depth = 1;
  // One more layer, the projection and another pass of the head; of the layer's norms 2h + latents, of the block's 3h multiply nothing.
  const double layer = 11507286272.0 - (256.0 - 8) * 44040192 - 2 * 7168 - 2048 - 256;
  const double mtp = 6 * (layer + 2.0 * 7168 * 7168 + 129280.0 * 7168) + 3 * attention / 61;
  CHECK(model_flops_per_token(resolved(spec), 4096, true).value == Approx(6 * products + 3 * attention + mtp).epsilon(1e-12));
}

TEST_CASE("a window caps the work of attention", "[ops]") {
  const ResolvedModel model = preset("gpt-oss-20b");  // window 128, 64 heads of 64
  REQUIRE(model.kinds.size() == 2);
  const auto work = [&](std::size_t kind, std::int64_t s) {
    return layer_ledger(model, model.kinds[kind], {}, {}, shape_of(s, 1)).attention.at(0);
  };
  CHECK(model.kinds[0].attention.window == 128);
  CHECK(work(0, 4096).context == 128);
  // Query i sees min(i + 1/2, W) keys on average: s*W - W^2/2 instead of s^2/2.
  CHECK(work(0, 4096).flops_forward == Approx(2.0 * 64 * (64 + 64) * (4096.0 * 128 - 128.0 * 128 / 2)).epsilon(1e-12));
  CHECK(work(1, 4096).flops_forward == 2.0 * 64 * (64 + 64) * 4096.0 * 4096 / 2);
  CHECK(work(0, 64).flops_forward == work(1, 64).flops_forward);  // a window longer than the sequence changes nothing
  CHECK(work(0, 4096).flops_full == work(1, 4096).flops_full);
}

TEST_CASE("products of one rank", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  const LayerLedger one = layer_ledger(model, model.kinds[0], {}, {}, shape_of(8192, 1));
  CHECK(gemm_flops(one) == 2.0 * 8192 * (218112000 - 2 * 4096));  // 2 * T * weights of the layer
  const LayerLedger four = layer_ledger(model, model.kinds[0], {}, {}, shape_of(8192, 1, 4));
  CHECK(gemm_flops(four) == gemm_flops(one) / 4);
  CHECK(four.gemms.at(0).n == (4096 + 2 * 1024) / 4);
  CHECK(four.attention.at(0).flops_forward == one.attention.at(0).flops_forward / 4);
  // 16 ranks, 8 KV heads: each rank holds one whole KV head.
  CHECK(layer_ledger(model, model.kinds[0], {}, {}, shape_of(8192, 1, 16)).gemms.at(0).n == 4096.0 / 16 + 2 * 128);
}

TEST_CASE("expert products have the rows one local expert sees", "[ops]") {
  const ResolvedModel model = preset("qwen3-30b-a3b");  // 128 experts of 768, 8 per token, h 2048
  LayerShape shape = shape_of(4096, 1);
  shape.ep = 8;
  const LayerLedger ledger = layer_ledger(model, model.kinds[0], {}, {}, shape);
  const auto product = std::find_if(ledger.gemms.begin(), ledger.gemms.end(), [](const Gemm& g) { return g.op == "experts in"; });
  REQUIRE(product != ledger.gemms.end());
  CHECK(product->count == 16);               // 128 / 8
  CHECK(product->m == 4096.0 * 8 * 8 / 128); // T*k*ep/E
  CHECK(product->n == 2 * 768);
  CHECK(product->k == 2048);
  CHECK(product->kind == GemmClass::expert);
  shape.tp = shape.etp = 2;
  const LayerLedger split = layer_ledger(model, model.kinds[0], {}, {}, shape);
  CHECK(split.gemms.at(3).m == product->m);  // every expert tensor rank sees all rows, half the columns
  CHECK(split.gemms.at(3).n == 768);
}

TEST_CASE("a fused dense layer moves 22h + 6f + 6(a + 2g)d bytes per token", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  const auto wanted = [](double t, double sigma) { return 8192 * (22 * 4096 / sigma + 6 * 14336 / t + 6 * (32 + 16) * 128 / t); };
  for (const int t : {1, 2, 8})
    for (const bool sp : {false, true}) {
      const Traffic moved = stream_bytes(layer_ledger(model, model.kinds[0], {}, {}, shape_of(8192, 1, t, sp)), false);
      CHECK(moved.forward == wanted(t, sp ? t : 1));
      CHECK(moved.backward == 1.5 * moved.forward);
    }
  const ResolvedModel plain = resolved(gpt(1024, 16, 2, 1000));
  CHECK(stream_bytes(layer_ledger(plain, plain.kinds[0], {}, {}, shape_of(512, 1)), false).forward ==
        512.0 * (22 * 1024 + 4 * 4096 + 6 * 48 * 64));
}

TEST_CASE("routed rows move 12h bytes, their activations 6f like dense ones, the router 8 per expert", "[ops]") {
  const ResolvedModel model = preset("mixtral-8x7b");
  const LayerLedger ledger = layer_ledger(model, model.kinds[0], {}, {}, shape_of(4096, 1));
  CHECK(stream_bytes(ledger, true).forward == 4096.0 * 2 * 12 * 4096);
  CHECK(stream_bytes(ledger, false).forward == 4096.0 * (22 * 4096 + 6 * (32 + 16) * 128 + 8 * 8 + 2 * 6 * 14336));
}

TEST_CASE("tensor parallelism exchanges the hidden states twice each way", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  const double state = 8192.0 * 4096 * 2;
  const LayerLedger plain = layer_ledger(model, model.kinds[0], {}, {}, shape_of(8192, 1, 4));
  CHECK(collective_bytes(plain, CollectiveKind::all_reduce, GroupKind::tp).forward == 2 * state);
  CHECK(collective_bytes(plain, CollectiveKind::all_reduce, GroupKind::tp).backward == 2 * state);
  CHECK(plain.collectives.size() == 2);

  FrameworkProfile profile;
  const LayerLedger sharded = layer_ledger(model, model.kinds[0], {}, profile, shape_of(8192, 1, 4, true));
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    CHECK(collective_bytes(sharded, kind, GroupKind::tp).forward == 2 * state);
    CHECK(collective_bytes(sharded, kind, GroupKind::tp).backward == 2 * state);
  }
  CHECK(collective_bytes(sharded, CollectiveKind::all_gather, GroupKind::tp, true).backward == 2 * state);
  profile.memory.gathered_inputs_kept = true;
  CHECK(collective_bytes(layer_ledger(model, model.kinds[0], {}, profile, shape_of(8192, 1, 4, true)), CollectiveKind::all_gather,
                         GroupKind::tp, true).backward == 0);
  CHECK(layer_ledger(model, model.kinds[0], {}, {}, shape_of(8192, 1)).collectives.empty());
}

TEST_CASE("experts exchange k rows per token each way", "[ops]") {
  const ResolvedModel model = preset("qwen3-30b-a3b");
  LayerShape shape = shape_of(4096, 1, 2, true);
  shape.ep = 8;
  const double rows = 8 * 4096.0 / 2 * 2048 * 2;
  LayerLedger ledger = layer_ledger(model, model.kinds[0], {}, {}, shape);
  CHECK(collective_bytes(ledger, CollectiveKind::all_to_all, GroupKind::ep).forward == 2 * rows);
  CHECK(collective_bytes(ledger, CollectiveKind::all_to_all, GroupKind::ep).backward == 2 * rows);
  shape.etp = 2;
  ledger = layer_ledger(model, model.kinds[0], {}, {}, shape);
  CHECK(collective_bytes(ledger, CollectiveKind::all_gather, GroupKind::etp).forward == 2 * rows);
  CHECK(collective_bytes(ledger, CollectiveKind::reduce_scatter, GroupKind::etp).backward == 2 * rows);
}

TEST_CASE("context parallelism moves keys and values, or heads", "[ops]") {
  const ResolvedModel model = preset("llama-3.1-8b");
  LayerShape shape = shape_of(32768, 1, 2);
  shape.cp = 4;
  const double block = 8192.0 * 2 * (4 * 128 + 4 * 128);  // T * K and V of 8/2 heads
  const auto traffic = [&](CpAlgorithm algorithm, CollectiveKind kind) {
    shape.cp_algorithm = algorithm;
    return collective_bytes(layer_ledger(model, model.kinds[0], {}, {}, shape), kind, GroupKind::cp);
  };
  CHECK(traffic(CpAlgorithm::ring, CollectiveKind::send_receive).forward == 3 * block);
  CHECK(traffic(CpAlgorithm::ring, CollectiveKind::send_receive).backward == 6 * block);
  CHECK(traffic(CpAlgorithm::all_gather, CollectiveKind::all_gather).forward == 4 * block);
  CHECK(traffic(CpAlgorithm::all_gather, CollectiveKind::reduce_scatter).backward == 4 * block);
  const double queries = 8192.0 * 2 * 16 * 128;
  CHECK(traffic(CpAlgorithm::ulysses, CollectiveKind::all_to_all).forward == 2 * queries + block);
}

TEST_CASE("selective recompute names what runs again", "[ops]") {
  const ResolvedModel model = preset("deepseek-v3");
  FrameworkProfile profile;
  LayerLedger ledger = layer_ledger(model, model.kinds[0], {}, profile, shape_of(4096, 1, 2, true));
  CHECK(ledger.selective_gemms.size() == ledger.gemms.size());
  CHECK(ledger.selective_attention.size() == ledger.attention.size());
  CHECK(ledger.selective_streams.size() == ledger.streams.size());
  CHECK(ledger.selective_attention.at(0));
  CHECK(std::count(ledger.selective_gemms.begin(), ledger.selective_gemms.end(), true) == 0);
  profile.memory.selective_drops_mla_up = true;
  ledger = layer_ledger(model, model.kinds[0], {}, profile, shape_of(4096, 1, 2, true));
  CHECK(std::count(ledger.selective_gemms.begin(), ledger.selective_gemms.end(), true) == 2);  // q up, kv up
  CHECK(ledger.saved_bytes(Recompute::selective) < ledger.saved_bytes(Recompute::off) - 4096.0 / 2 * 2 * 128 * 192);
}

TEST_CASE("KV heads are replicated where there are fewer than ranks", "[ops]") {
  const ResolvedModel model = preset("qwen3-30b-a3b");  // 4 KV heads of 128, h 2048
  const auto held = [&](int t) { return t * layer_ledger(model, model.kinds[0], {}, {}, shape_of(4096, 1, t)).parameter_elements(ParameterClass::tensor); };
  CHECK(held(4) == held(1));
  CHECK(held(8) == held(1) + 4 * 2 * 128 * 2048);  // four more heads of K and V
}

TEST_CASE("the shards of all ranks are the model", "[ops]") {
  for (const char* name : {"llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "qwen3-30b-a3b", "llama-4-maverick"}) {
    const ResolvedModel model = preset(name);
    FrameworkProfile profile;
    profile.can.vocab_padding = 1;
    for (const int t : {1, 2, 4, 8}) {
      if (t > model.kinds.front().attention.kv_heads) continue;  // then KV heads are replicated
      for (const int ep : {1, 2, 8}) {
        LayerShape shape = shape_of(4096, 1, t);
        shape.ep = ep;
        for (std::size_t i = 0; i < model.kinds.size(); ++i) {
          const LayerLedger ledger = layer_ledger(model, model.kinds[i], {}, profile, shape);
          const double sum = t * ledger.parameter_elements(ParameterClass::tensor) + ledger.parameter_elements(ParameterClass::replicated) +
                             ep * ledger.parameter_elements(ParameterClass::expert);
          CHECK(sum == static_cast<double>(count_parameters(model).per_kind[i]));
        }
        const LayerLedger table = embedding_ledger(model, {}, profile, shape);
        CHECK(t * table.parameter_elements(ParameterClass::tensor) == static_cast<double>(count_parameters(model).embedding));
      }
    }
  }
}
