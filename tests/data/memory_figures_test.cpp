// SPDX-License-Identifier: Apache-2.0
// Memory figures of trainers whose peaks no other test prices: each stated once more as the sum it stands for.
#include <catch2/catch.hpp>

#include "nd/data_store.hpp"

namespace {

nd::MemoryProfile memory_of(const char* name, const char* version, const std::vector<std::string>& features = {}) {
  const auto profile = nd::DataStore(ND_TEST_DATA_DIR).framework(name, version, features);
  INFO(name << " " << version << (profile ? std::string() : to_text(profile.error().diagnostics.front())));
  REQUIRE(profile);
  return profile->memory;
}

}  // namespace

TEST_CASE("LLM-Foundry: fp32 weights and states under FSDP, a loss that keeps logits and their gradient in 16 bits", "[data]") {
  const auto memory = memory_of("llm-foundry", "");
  CHECK(memory.weight_bytes + memory.gradient_bytes + memory.main_bytes + memory.state_bytes == 4 + 4 + 0 + 8);
  CHECK(memory.logit_bytes == 2 + 2);
  CHECK(memory.gathered_weight_bytes == 2);
  CHECK(memory.fsdp_root_gathered);
}

TEST_CASE("InternEvo: 34 bytes a parameter without and 28 with FSDP describe its device readings", "[data]") {
  // Sharded part of ZeRO-1 included: 2 + 2 + 4 + 8 and what is not weight, gradient, main copy or moment.
  const auto sum = [](const nd::MemoryProfile& m) {
    return m.weight_bytes + m.gradient_bytes + m.main_bytes + m.state_bytes + m.gradient_partition_bytes;
  };
  CHECK(sum(memory_of("internevo", "")) == 34);
  CHECK(sum(memory_of("internevo", "", {"fsdp"})) == 28);
}

TEST_CASE("GPTBigCode raises no logits to fp32: logits, shifted copy, log-softmax and gradient", "[data]") {
  for (const char* version : {"4.45", "4.48"}) {
    CAPTURE(version);
    CHECK(memory_of("hf-trainer", version, {"loss_in_16_bit"}).logit_bytes == 2 + 2 + 2 + 2);
    CHECK(memory_of("hf-trainer", version, {"loss_in_16_bit_fused"}).logit_bytes == 2 + 2 + 2);   // no log-softmax
    CHECK(memory_of("hf-trainer", version, {"loss_in_32_bit"}).logit_bytes == 4 + 4 + 4 + 4);     // tables and norms in fp32
    CHECK(memory_of("hf-trainer", version, {"loss_in_32_bit_fused"}).logit_bytes == 4 + 4 + 4);
    CHECK(memory_of("hf-trainer", version, {"loss_in_32_bit"}).recompute_input_bytes == 4);       // so is the residual stream
  }
}

TEST_CASE("torchtitan: three fp32 tensors of the loss, an fp32 and a 16-bit one when it is compiled", "[data]") {
  CHECK(memory_of("torchtitan", "eager").logit_bytes == 4 + 4 + 4);
  CHECK(memory_of("torchtitan", "compiled").logit_bytes == 4 + 2);
  CHECK(memory_of("torchtitan", "compiled", {"no_compile"}).logit_bytes == 4 + 4 + 4);
  const auto policy = memory_of("torchtitan", "eager");
  CHECK(policy.selective_drops_experts);
  CHECK(policy.selective_every_second_product);
  CHECK_FALSE(policy.selective_drops_mla_up);  // products are what the policy keeps
}

TEST_CASE("Megatron-DeepSpeed: buckets of 5e8 elements, none where Megatron-LM runs alone", "[data]") {
  CHECK(memory_of("megatron-deepspeed", "bigscience-fp16").bucket_bytes == 14 * 5e8);
  CHECK(memory_of("megatron-deepspeed", "bigscience-fp16", {"without_deepspeed"}).bucket_bytes == 0);
  CHECK(memory_of("megatron-deepspeed", "bigscience-fp16").reserve_factor == 1);  // readings grow by the ledger's dynamic bytes
}

TEST_CASE("Trainers without a published reserve keep a margin, and nobody's is below what is allocated", "[data]") {
  const nd::DataStore data(ND_TEST_DATA_DIR);
  const auto names = data.framework_names();
  REQUIRE(names);
  const auto generic = memory_of("generic", "");
  for (const std::string& name : *names) {
    CAPTURE(name);
    const auto memory = memory_of(name.c_str(), "");
    CHECK(memory.reserve_factor >= 1);
    CHECK(memory.reserve_factor_single >= 1);
    CHECK(memory.reserve_factor <= generic.reserve_factor);  // an unknown trainer is the heavier one
    CHECK(memory.model_error <= generic.model_error);
  }
}

TEST_CASE("8-bit products: two copies a weight with Transformer Engine, none where weights are stored in 8 bits", "[data]") {
  CHECK(memory_of("megatron-core", "").fp8_weight_bytes == 1 + 1);
  CHECK(memory_of("megatron-core", "", {"fp8_params"}).fp8_weight_bytes == 0);
  CHECK(memory_of("torchtitan", "compiled").fp8_weight_bytes == 0);  // cast anew for every product
}
