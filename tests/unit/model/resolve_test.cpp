// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "nd/model_spec.hpp"

using namespace nd;

namespace {

ModelSpec small() {
  ModelSpec spec;
  spec.hidden_size = 64;
  spec.num_hidden_layers = 6;
  spec.num_attention_heads = 4;
  spec.vocab_size = 1000;
  spec.intermediate_size = 256;
  return spec;
}

std::vector<std::string> problems(const ModelSpec& spec) {
  const auto model = resolve_model(spec, {"x.json", 3, 1, "model"});
  std::vector<std::string> out;
  if (model) return out;
  for (const Diagnostic& one : model.error().diagnostics) {
    CHECK(one.where.file == "x.json");
    CHECK(one.where.line == 3);
    out.push_back(one.where.path + " " + to_text(one.code));
  }
  return out;
}

using Problems = std::vector<std::string>;

std::string attention_of(const ResolvedModel& model) {
  std::string out;
  for (const int index : model.layer_kind) {
    const AttentionSpec& a = model.kinds[static_cast<std::size_t>(index)].attention;
    out += a.kind == AttentionKind::gated_delta ? 'l' : a.window > 0 ? 'w' : 'f';
  }
  return out;
}

std::string ffn_of(const ResolvedModel& model) {
  std::string out;
  for (const int index : model.layer_kind) out += model.kinds[static_cast<std::size_t>(index)].ffn.kind == FfnKind::moe ? 'm' : 'd';
  return out;
}

ResolvedModel resolved(const ModelSpec& spec) {
  const auto model = resolve_model(spec);
  if (!model) FAIL(to_text(model.error().diagnostics.front()));
  return *model;
}

}  // namespace

TEST_CASE("what a plain model leaves open is derived", "[model]") {
  const ResolvedModel model = resolved(small());
  REQUIRE(model.kinds.size() == 1);
  const LayerKind& kind = model.kinds[0];
  CHECK(model.layers() == 6);
  CHECK(kind.attention.kv_heads == 4);
  CHECK(kind.attention.qk_dim == 16);
  CHECK(kind.attention.v_dim == 16);
  CHECK(kind.norms == 2);
  CHECK(kind.ffn.gated);
  CHECK(kind.ffn.width == 256);
  CHECK(model.name == "custom");
  CHECK_FALSE(model.tied_embeddings);
  CHECK_FALSE(model.has_experts());
}

TEST_CASE("every missing field is named at once", "[model]") {
  CHECK(problems({}) == Problems{"model.hidden_size missing_field", "model.num_hidden_layers missing_field",
                                 "model.num_attention_heads missing_field", "model.vocab_size missing_field"});
  ModelSpec spec = small();
  spec.intermediate_size.reset();
  CHECK(problems(spec) == Problems{"model.intermediate_size missing_field"});
  spec = small();
  spec.learned_positions = true;
  CHECK(problems(spec) == Problems{"model.max_position_embeddings missing_field"});
}

TEST_CASE("numbers out of bounds and contradictions", "[model]") {
  ModelSpec spec = small();
  spec.hidden_size = 0;
  spec.vocab_size = std::int64_t{1} << 40;
  spec.attention_dropout = 1.5;
  CHECK(problems(spec) == Problems{"model.hidden_size out_of_range", "model.vocab_size out_of_range", "model.attention_dropout out_of_range"});
  spec = small();
  spec.num_key_value_heads = 3;
  CHECK(problems(spec) == Problems{"model.num_key_value_heads conflict"});
  spec = small();
  spec.num_attention_heads = 5;
  CHECK(problems(spec) == Problems{"model.head_dim missing_field"});
  spec.head_dim = 16;
  CHECK(problems(spec).empty());
  spec = small();
  spec.num_experts = 4;
  spec.num_experts_per_tok = 5;
  CHECK(problems(spec) == Problems{"model.num_experts_per_tok conflict"});
  spec.num_experts_per_tok = 2;
  spec.intermediate_size.reset();
  CHECK(problems(spec) == Problems{"model.moe_intermediate_size missing_field"});
  spec.moe_intermediate_size = 32;
  spec.moe_layers = {1, 6};
  CHECK(problems(spec) == Problems{"model.moe_layers out_of_range"});
}

TEST_CASE("groups of fields come whole", "[model]") {
  ModelSpec spec = small();
  spec.linear_num_key_heads = 2;
  spec.linear_key_head_dim = 8;
  CHECK(problems(spec) == Problems{"model.linear_num_value_heads missing_field", "model.linear_value_head_dim missing_field",
                                   "model.linear_conv_kernel_dim missing_field"});
  spec = small();
  spec.kv_lora_rank = 32;
  CHECK(problems(spec) == Problems{"model.qk_nope_head_dim missing_field", "model.qk_rope_head_dim missing_field", "model.v_head_dim missing_field"});
  spec = small();
  spec.layer_types = {"full_attention", "full_attention"};
  CHECK(problems(spec) == Problems{"model.layer_types conflict"});
  spec.layer_types.assign(6, "sliding_attention");
  CHECK(problems(spec) == Problems{"model.sliding_window missing_field"});
  spec.layer_types.assign(6, "linear_attention");
  CHECK(problems(spec) == Problems{"model.linear_num_key_heads missing_field"});
  spec.layer_types.assign(6, "state_space");
  CHECK(problems(spec) == Problems{"model.layer_types out_of_range"});
}

TEST_CASE("a model of more parameters than can be counted is refused", "[model]") {
  ModelSpec spec = small();
  spec.num_experts = 1 << 20;
  spec.num_experts_per_tok = 1;
  spec.moe_intermediate_size = spec.hidden_size = 1 << 24;
  spec.head_dim = 64;
  const auto model = resolve_model(spec);
  REQUIRE_FALSE(model);
  CHECK(model.error().code() == Errc::out_of_range);
}

TEST_CASE("latent attention has as many key heads as query heads", "[model]") {
  ModelSpec spec = small();
  spec.kv_lora_rank = 32;
  spec.qk_nope_head_dim = 16;
  spec.qk_rope_head_dim = 8;
  spec.v_head_dim = 12;
  const AttentionSpec a = resolved(spec).kinds[0].attention;
  CHECK(a.kind == AttentionKind::mla);
  CHECK(a.kv_heads == 4);
  CHECK(a.qk_dim == 24);
  CHECK(a.v_dim == 12);
  CHECK(a.q_lora_rank == 0);
}

TEST_CASE("which layers see how far", "[model]") {
  ModelSpec spec = small();
  spec.sliding_window = 128;
  CHECK(attention_of(resolved(spec)) == "wwwwww");
  spec.sliding_window_pattern = 3;
  CHECK(attention_of(resolved(spec)) == "wwfwwf");
  spec.layer_types = {"full_attention", "sliding_attention", "chunked_attention", "full_attention", "full_attention", "full_attention", "cut"};
  CHECK(problems(spec) == Problems{"model.layer_types out_of_range"});  // even in what is cut off
  spec.layer_types.back() = "full_attention";
  CHECK(attention_of(resolved(spec)) == "fwwfff");
  spec = small();
  spec.linear_num_key_heads = spec.linear_num_value_heads = 4;
  spec.linear_key_head_dim = spec.linear_value_head_dim = 16;
  spec.linear_conv_kernel_dim = 4;
  spec.full_attention_interval = 4;
  ResolvedModel model = resolved(spec);
  CHECK(attention_of(model) == "lllfll");
  spec.mtp_depth = 1;
  model = resolved(spec);
  CHECK(model.kinds[static_cast<std::size_t>(model.mtp_kind)].attention.kind == AttentionKind::softmax);  // not the last, a linear one
}

TEST_CASE("which layers have experts", "[model]") {
  ModelSpec spec = small();
  spec.num_experts = 8;
  spec.num_experts_per_tok = 2;
  spec.moe_intermediate_size = 32;
  CHECK(ffn_of(resolved(spec)) == "mmmmmm");
  spec.first_k_dense_replace = 2;
  CHECK(ffn_of(resolved(spec)) == "ddmmmm");
  spec.moe_layer_freq = 2;
  CHECK(ffn_of(resolved(spec)) == "dddmdm");
  spec.mlp_only_layers = {5};
  CHECK(ffn_of(resolved(spec)) == "dddmdd");
  spec.moe_layers = {0, 4};  // a stated list wins
  CHECK(ffn_of(resolved(spec)) == "mdddmd");
  spec.dense_intermediate_size = 512;
  spec.shared_expert_intermediate_size = 48;
  const ResolvedModel model = resolved(spec);
  REQUIRE(model.kinds.size() == 2);
  CHECK(model.kinds[0].ffn.expert_width == 32);
  CHECK(model.kinds[0].ffn.shared_experts == 1);
  CHECK(model.kinds[0].ffn.shared_width == 48);
  CHECK(model.kinds[1].ffn.width == 512);
  spec.num_experts = 1;
  CHECK(ffn_of(resolved(spec)) == "dddddd");
}
