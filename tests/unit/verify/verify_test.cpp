// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint.hpp"
#include "nd/data_store.hpp"
#include "nd/formats.hpp"
#include "nd/ops.hpp"
#include "nd/verify.hpp"
#include "support/json_schema.hpp"

namespace {

using nd::testing::CheckpointFolder;
using nd::testing::FakeTensor;

const nd::DataStore kData(ND_TEST_DATA_DIR);

struct Preset {
  nd::ModelSpec stated;
  nd::ResolvedModel model;
};

Preset preset(const std::string& name) {
  const auto request = nd::read_request(name, "", kData);
  REQUIRE(request);
  const auto model = nd::resolve_model(request->model);
  REQUIRE(model);
  return {request->model, *model};
}

std::vector<FakeTensor> tensors_of(const nd::ResolvedModel& model) {
  std::vector<FakeTensor> out;
  for (const auto& tensor : nd::expected_tensors(model))
    if (!tensor.copy) out.push_back({tensor.name, tensor.shape});
  return out;
}

nd::Verification verify(const Preset& preset, const std::vector<FakeTensor>& tensors, const std::string& folder_name) {
  const CheckpointFolder folder(folder_name);
  // Two files, as large checkpoints have.
  const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
  nd::testing::write_safetensors(folder.path("model-00001-of-00002.safetensors"), {tensors.begin(), middle});
  nd::testing::write_safetensors(folder.path("model-00002-of-00002.safetensors"), {middle, tensors.end()});
  const auto census = nd::read_checkpoint(folder.path());
  REQUIRE(census);
  return nd::verify_model(preset.stated, preset.model, *census);
}

/// Llama by hand, from modeling_llama of transformers.
std::vector<FakeTensor> llama_by_hand() {
  std::vector<FakeTensor> out{{"model.embed_tokens.weight", {128256, 4096}}, {"model.norm.weight", {4096}}, {"lm_head.weight", {128256, 4096}}};
  for (int layer = 0; layer < 32; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    out.push_back({at + "input_layernorm.weight", {4096}});
    out.push_back({at + "post_attention_layernorm.weight", {4096}});
    out.push_back({at + "self_attn.q_proj.weight", {4096, 4096}});
    out.push_back({at + "self_attn.k_proj.weight", {1024, 4096}});
    out.push_back({at + "self_attn.v_proj.weight", {1024, 4096}});
    out.push_back({at + "self_attn.o_proj.weight", {4096, 4096}});
    out.push_back({at + "mlp.gate_proj.weight", {14336, 4096}});
    out.push_back({at + "mlp.up_proj.weight", {14336, 4096}});
    out.push_back({at + "mlp.down_proj.weight", {4096, 14336}});
  }
  return out;
}

bool has(const std::vector<std::string>& names, const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); }

/// Problems of a document against a schema of the data folder.
std::vector<std::string> schema_problems(const nlohmann::json& document, const std::string& schema) {
  std::ifstream file(std::string(ND_TEST_DATA_DIR) + "/schema/" + schema + ".schema.json");
  return nd::testing::schema_problems(document, nlohmann::json::parse(file));
}

}  // namespace

TEST_CASE("checkpoints of all presets agree to the unit", "[verify]") {
  const auto names = kData.model_names();
  REQUIRE(names);
  REQUIRE(names->size() >= 22);
  std::ifstream file(std::string(ND_TEST_SOURCE_DIR) + "/tests/data/expected_parameters.json");
  const auto published = nlohmann::json::parse(file);
  REQUIRE(published.size() >= 22);
  for (const std::string& name : *names) {
    if (!published.contains(name)) continue;  // no published count to the unit
    INFO(name);
    const Preset one = preset(name);
    const nd::Verification result = verify(one, tensors_of(one.model), "preset");
    const auto count = nd::count_parameters(one.model);
    CHECK(result.checkpoint_elements == count.total + count.mtp);
    CHECK(result.priced_elements == count.total + count.mtp);
    // The preset of Qwen3-Next says nothing of the MTP block of the published one.
    CHECK(result.checkpoint_elements == published[name]["text_main"].get<std::int64_t>() + count.mtp);
    if (count.mtp > 0) CHECK(count.mtp == published[name]["mtp_unique"].get<std::int64_t>());
    CHECK(result.missing.empty());
    CHECK(result.unexpected.empty());
    CHECK(result.reshaped.empty());
    CHECK_FALSE(result.differs());
    for (const auto& part : result.parts) {
      INFO(part.kind << " " << part.part);
      CHECK(part.checkpoint == part.priced);
      CHECK(part.by_names == part.priced);
    }
    for (const auto& fact : result.facts) {
      INFO(fact.field);
      if (fact.measured) CHECK(*fact.measured == fact.configured);
    }
    for (const auto& op : result.ops) {
      INFO(op.kind << " " << op.op);
      CHECK(op.flops == Approx(op.flops_by_tensors).epsilon(1e-12));
      CHECK(op.intensity() > 0);
    }
  }
}

TEST_CASE("a llama checkpoint written by hand agrees", "[verify]") {
  const nd::Verification result = verify(preset("llama-3.1-8b"), llama_by_hand(), "llama");
  CHECK_FALSE(result.differs());
  CHECK(result.checkpoint_elements == 8'030'261'248);  // the published count
  // Per token and layer: norms 8h; q, k, v, output 2 (4096 + 2048 + 4096) and 4 bytes for each of 32 heads; three of 14336.
  for (const auto& check : result.activations) {
    INFO(check.part);
    if (check.part == "norms") CHECK(check.published == 8.0 * 4096);
    if (check.part == "attention") CHECK(check.published == 2.0 * 10240 + 128);
    if (check.part == "dense ffn") CHECK(check.published == 6.0 * 14336);
    CHECK(check.bytes == Approx(check.published).epsilon(0.01));
  }
  CHECK(result.activations.size() == 3);
  const auto json = nlohmann::json::parse(nd::verification_json(result));
  CHECK(schema_problems(json, "verification") == std::vector<std::string>{});
}

TEST_CASE("a removed, an added and a reshaped tensor are found and named", "[verify]") {
  for (const char* name : {"llama-3.2-3b", "mixtral-8x7b", "gpt-oss-20b", "qwen3.6-35b-a3b"}) {
    INFO(name);
    const Preset one = preset(name);
    const std::vector<FakeTensor> all = tensors_of(one.model);
    for (const std::size_t at : {std::size_t{0}, all.size() / 3, all.size() - 1}) {
      std::vector<FakeTensor> removed = all;
      removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(at));
      const auto less = verify(one, removed, "removed");
      INFO(all[at].name);
      CHECK(less.missing == std::vector<std::string>{all[at].name});
      CHECK(less.differs());

      std::vector<FakeTensor> reshaped = all;
      ++reshaped[at].shape[0];
      const auto other = verify(one, reshaped, "reshaped");
      REQUIRE(other.reshaped.size() == 1);
      CHECK(other.reshaped[0].name == all[at].name);
      CHECK(other.reshaped[0].expected == all[at].shape);
      CHECK(other.differs());
    }
    std::vector<FakeTensor> added = all;
    added.push_back({"model.layers.1.self_attn.surprise.weight", {7, 3}});
    const auto more = verify(one, added, "added");
    CHECK(more.unexpected == std::vector<std::string>{"model.layers.1.self_attn.surprise.weight"});
    CHECK(more.differs());
    CHECK(more.checkpoint_elements == more.priced_elements + 21);
  }
}

TEST_CASE("a checkpoint of another size shows which facts differ, and gives the spec", "[verify]") {
  const Preset one = preset("llama-3.1-8b");
  auto tensors = llama_by_hand();
  for (auto& tensor : tensors) {
    if (tensor.name.find("k_proj") != std::string::npos || tensor.name.find("v_proj") != std::string::npos) tensor.shape[0] = 512;  // 4 heads of 128
    if (tensor.name.find("gate_proj") != std::string::npos || tensor.name.find("up_proj") != std::string::npos) tensor.shape[0] = 11008;
    if (tensor.name.find("down_proj") != std::string::npos) tensor.shape[1] = 11008;
  }
  const auto result = verify(one, tensors, "other");
  CHECK(result.differs());
  const auto measured = nd::resolve_model(result.measured);
  REQUIRE(measured);
  // The measured spec prices what the checkpoint holds.
  CHECK(nd::count_parameters(*measured).total == result.checkpoint_elements);
  const std::string yaml = nd::measured_spec_yaml(result);
  CHECK(yaml.find("num_key_value_heads: 4  # configured: 8\n") != std::string::npos);
  CHECK(yaml.find("intermediate_size: 11008  # configured: 14336\n") != std::string::npos);
  CHECK(yaml.find("hidden_size: 4096\n") != std::string::npos);
}

TEST_CASE("what is no parameter of the text model is counted apart", "[verify]") {
  const Preset one = preset("llama-3.2-3b");
  auto tensors = tensors_of(one.model);
  tensors.push_back({"lm_head.weight", {128256, 3072}});  // tied: a copy of the table
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {64}});
  tensors.push_back({"model.layers.0.mlp.up_proj.weight_scale_inv", {64, 24}});
  tensors.push_back({"vision_tower.encoder.layers.0.mlp.fc1.weight", {10, 10}});
  const auto result = verify(one, tensors, "apart");
  CHECK_FALSE(result.differs());
  CHECK(result.copies == 128256 * 3072);
  CHECK(result.buffers == 64);
  CHECK(result.scales == 64 * 24);
  CHECK(result.vision == 100);
  CHECK(has(result.missing, "lm_head.weight") == false);
}

TEST_CASE("packed experts of gpt-oss are unpacked: two values a byte, rows and columns the other way round", "[verify]") {
  const Preset one = preset("gpt-oss-20b");
  nd::TensorCensus census;
  for (const auto& tensor : nd::expected_tensors(one.model)) {
    const bool packed = tensor.part == "experts" && tensor.shape.size() == 3;
    if (!packed) {
      census.tensors[tensor.name] = {"BF16", tensor.shape, ""};
      continue;
    }
    const std::int64_t columns = tensor.shape[1], rows = tensor.shape[2];  // 32 values a group, 16 bytes
    census.tensors[tensor.name + "_blocks"] = {"U8", {tensor.shape[0], rows, columns / 32, 16}, ""};
    census.tensors[tensor.name + "_scales"] = {"U8", {tensor.shape[0], rows, columns / 32}, ""};
  }
  const auto result = nd::verify_model(one.stated, one.model, census);
  CHECK_FALSE(result.differs());
  CHECK(result.checkpoint_elements == result.priced_elements);
  CHECK(result.scales > 0);
}
