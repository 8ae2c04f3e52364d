// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <map>
#include <set>
#include <string>

#include "core/text.hpp"
#include "data_support.hpp"
#include "formats/readers/framework.hpp"
#include "formats/tree/map_reader.hpp"
#include "nd/data_store.hpp"

namespace {

const nd::DataStore& store() {
  static const nd::DataStore data(ND_TEST_DATA_DIR);
  return data;
}

nd::FrameworkProfile profile(const std::string& name, const std::string& version = "", const std::vector<std::string>& features = {}) {
  auto result = store().framework(name, version, features);
  INFO(name << " " << version << ": " << nd::test::problems(result));
  REQUIRE(result.has_value());
  return *result;
}

std::vector<std::string> frameworks() { return store().framework_names().value(); }

std::string path_of(const std::string& name) { return std::string(ND_TEST_DATA_DIR) + "/frameworks/" + name + ".yaml"; }

}  // namespace

TEST_CASE("every framework file loads in every version with every feature") {
  const auto names = store().framework_names();
  REQUIRE(names.has_value());
  CHECK(names->size() == 15);
  for (const std::string& name : *names) {
    const auto root = nd::formats::read_document(path_of(name));
    REQUIRE(root.has_value());
    const auto file = nd::formats::FrameworkFile::read(*root);
    INFO(name << ": " << nd::test::problems(file));
    REQUIRE(file.has_value());
    REQUIRE_FALSE(file->features().empty());
    for (const auto& version : file->versions()) {
      const auto plain = file->profile(version.name, {});
      REQUIRE(plain.has_value());
      CHECK(plain->version == version.name);
      CHECK(plain->name == name);
      for (const auto& feature : file->features()) {
        INFO(version.name << " " << feature.name);
        const auto with = file->profile(version.name, {feature.name});
        REQUIRE(with.has_value());
        CHECK_FALSE(feature.title.empty());
        CHECK(with->sources.size() >= plain->sources.size());
      }
    }
  }
}

TEST_CASE("every figure that a price needs has a source in every framework") {
  // What is left to the header's default is "no such habit": zero extra bytes, nothing recomputed, nothing hidden.
  const char* needed[] = {
      "capabilities.max_zero", "capabilities.style", "capabilities.rank_order", "capabilities.tensor_parallel",
      "capabilities.pipeline_parallel", "memory.weight_bytes", "memory.gradient_bytes", "memory.main_bytes", "memory.state_bytes",
      "memory.fp16_gradient_bytes", "memory.flash_attention", "memory.swiglu_bytes", "memory.gelu_bytes", "memory.rotary_copies",
      "memory.softmax_statistics_bytes", "memory.logit_bytes", "memory.logit_bytes_tp", "memory.base_workspace_gib", "memory.dispatcher",
      "memory.layer_working_set_ffn", "memory.layer_working_set_hidden", "memory.reserve_factor", "memory.reserve_constant_gib",
      "memory.reserve_factor_single", "memory.reserve_constant_single_gib", "memory.model_error", "time.traffic_factor",
      "time.library_factor", "time.host_layer_ms", "time.host_moe_factor", "time.host_backward_ratio", "time.step_overhead_ms",
      "time.cp_exposed", "time.dp_overlap", "time.fsdp_overlap", "time.dp_exposed_floor", "time.moe_traffic_factor",
      "time.optimizer_bytes", "time.reduce_bytes", "time.gather_bytes", "time.attention_kernel"};
  for (const std::string& name : frameworks()) {
    const nd::FrameworkProfile one = profile(name);
    for (const char* path : needed) {
      INFO(name << " " << path);
      REQUIRE(one.sources.contains(path));
      CHECK_FALSE(one.sources.at(path).citation.empty());
    }
  }
}

TEST_CASE("names and aliases of frameworks are unique and found in any case") {
  std::map<std::string, std::string> owner;
  for (const std::string& name : frameworks()) {
    const auto root = nd::formats::read_document(path_of(name));
    REQUIRE(root.has_value());
    std::vector<nd::Diagnostic> sink;
    auto spellings = nd::formats::MapReader(*root, sink).strings("aliases").value();
    spellings.push_back(name);
    for (const std::string& spelling : spellings) {
      INFO(spelling);
      CHECK(owner.emplace(nd::core::canonical_name(spelling), name).second);
    }
  }
  for (const auto& [spelling, name] : owner) CHECK(profile(spelling).name == name);
  CHECK(profile("Megatron-LM").name == "megatron-core");
}

TEST_CASE("every attention kernel a profile names has a rate on every device") {
  std::set<std::string> kernels;
  for (const std::string& name : frameworks()) {
    kernels.insert(profile(name).time.attention_kernel);
    const auto root = nd::formats::read_document(path_of(name));
    REQUIRE(root.has_value());
    const auto file = nd::formats::FrameworkFile::read(*root).value();
    for (const auto& version : file.versions()) kernels.insert(version.profile.time.attention_kernel);
  }
  const auto devices = store().device_names().value();
  for (const std::string& device : devices) {
    const auto type = store().device(device);
    REQUIRE(type.has_value());
    for (const std::string& kernel : kernels) {
      INFO(device << " " << kernel);
      CHECK(type->compute.attention_fraction.contains(kernel));
    }
  }
}

TEST_CASE("versions differ where the studies say so") {
  // Loss bytes of MindSpeed: 10 a logit up to core 0.8, 6 from 2.2.0; the fp32 temporary of Adam ends with 2.3.0.
  CHECK(profile("mindspeed-llm", "1.0.RC3").memory.logit_bytes == 10);
  CHECK(profile("mindspeed-llm", "2.2.0").memory.logit_bytes == 6);
  CHECK(profile("mindspeed-llm", "2.3.0").memory.optimizer_temporary == nd::OptimizerTemporary::largest_tensor);
  CHECK(profile("mindspeed-llm").memory.optimizer_temporary == nd::OptimizerTemporary::none);
  CHECK(profile("megatron-core", "lm-2021").memory.flash_attention == false);
  // Fused operators move 1.0 of the counted bytes (prior, +- 20 %); the containers of mid-2026 about half.
  CHECK(std::abs(profile("megatron-core", "bridge-25.05").time.traffic_factor - 1.0) < 0.2);
  CHECK(profile("megatron-core").time.traffic_factor < 0.65);
  // fp16 under ZeRO-1: weights 2, gradients 2, and 16 in the sharded part (main 4, states 8, gradient partition 4).
  const auto bloom = profile("megatron-deepspeed", "bigscience-fp16").memory;
  CHECK(bloom.main_bytes + bloom.state_bytes + bloom.gradient_partition_bytes == 16);
  CHECK(bloom.fp16_gradient_bytes == 2);
  // Full fine-tuning with the HF Trainer peaks at 10 bytes a parameter: 2 + 2 + 4 and one copy of the gradients, 2.
  const auto hf = profile("hf-trainer").memory;
  CHECK(hf.weight_bytes + hf.gradient_bytes + hf.main_bytes + hf.state_bytes == 8);
  CHECK(hf.optimizer_temporary == nd::OptimizerTemporary::all_gradients);
  // Its loss: logits 2, fp32 copy 4, shifted copy 4, log-softmax 4; up to 4.45 the 16-bit logits are released.
  CHECK(hf.logit_bytes == 2 + 4 + 4 + 4);
  CHECK(profile("hf-trainer", "4.45").memory.logit_bytes == 4 + 4 + 4);
  CHECK(profile("hf-trainer", "4.45", {"fused_ce", "liger"}).memory.logit_bytes == 0);
  // The fp32 residual stream belongs to the k-bit preparation of peft, not to every 4-bit base.
  CHECK(profile("hf-trainer", "", {"qlora"}).memory.recompute_input_bytes == 2);
  CHECK(profile("hf-trainer", "", {"qlora", "kbit_upcast"}).memory.recompute_input_bytes == 4);
  // With autocast under FSDP 16 and one more copy of the fp32 gradients: 20.
  const auto autocast = profile("hf-trainer", "", {"autocast"}).memory;
  CHECK(autocast.weight_bytes + autocast.gradient_bytes + autocast.state_bytes + autocast.gradient_bytes == 20);
}

TEST_CASE("features apply in order, and a version may give them figures of its own") {
  const double nemo = profile("nemo", "nemo-25.04", {"tp_overlap"}).time.tp_exposed;
  const double bridge = profile("bridge", "bridge-25.05", {"tp_overlap"}).time.tp_exposed;
  CHECK(profile("nemo", "nemo-25.04").time.tp_exposed == 1.0);
  for (const double share : {nemo, bridge, profile("bridge", "bridge-26.05", {"TP-overlap"}).time.tp_exposed}) {
    CHECK(share > 0.2);
    CHECK(share < 0.7);
  }
  CHECK(nemo != bridge);  // a figure of the version, not of the feature all share
  CHECK(profile("hf", "4.45", {"fused_ce"}).memory.logit_bytes == 8);
  CHECK(profile("hf", "4.48", {"fused_ce"}).memory.logit_bytes == 10);
  CHECK(profile("megatron", "0.14", {"te_cross_entropy", "cross_entropy_fusion"}).memory.logit_bytes == 10);
  CHECK(profile("megatron", "0.14", {"cross_entropy_fusion", "te_cross_entropy"}).memory.logit_bytes == 4);
  const auto reuse = profile("mindspeed", "", {"reuse_fp32_param"}).memory;
  CHECK(reuse.main_bytes + reuse.state_bytes == 10);
  const auto swap = profile("mindspeed", "", {"swap_optimizer"}).memory;
  CHECK(swap.main_bytes + swap.state_bytes == 0);
}

TEST_CASE("an unlisted version takes the newest that is not after it, and the profile says which") {
  CHECK(profile("bridge", "25.09").version == "bridge-25.05");
  CHECK(profile("bridge", "26.02.01").version == "bridge-25.05");
  CHECK(profile("bridge", "bridge-27.01").version == "bridge-26.05");
  CHECK(profile("nemo", "24.07").version == "nemo-25.04");
  CHECK(profile("megatron", "0.11").version == "0.14");
  CHECK(profile("mindspeed", "1.0.RC4").version == "1.0.RC3");
  CHECK(profile("mindspeed", "v2.1.1").version == "2.1.0");
  CHECK(profile("mindformers", "1.4").version == "r1.3");
  CHECK(profile("hf", "4.46.3").version == "4.45");
  const auto old = store().framework("mindspeed", "0.9", {});
  REQUIRE_FALSE(old.has_value());
  CHECK(old.error().code() == nd::Errc::out_of_range);
  CHECK(nd::test::problems(old).find("no figures for version '0.9' of mindspeed-llm (known: 1.0.RC1, 1.0.RC3") != std::string::npos);
}

TEST_CASE("unknown frameworks and features are refused with the nearest name") {
  const auto framework = store().framework("megatro", "", {});
  REQUIRE_FALSE(framework.has_value());
  CHECK(nd::test::problems(framework).find("did you mean 'megatron'?") != std::string::npos);
  const auto feature = store().framework("megatron", "0.8", {"tp_overlp", "mc3"});
  REQUIRE_FALSE(feature.has_value());
  CHECK(nd::test::problems(feature).find("unknown feature 'tp_overlp' of megatron-core (did you mean 'tp_overlap'?)") != std::string::npos);
  CHECK(nd::test::problems(feature).find("unknown feature 'mc3'") != std::string::npos);
}
