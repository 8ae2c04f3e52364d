// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "formats/readers/values.hpp"
#include "nd/formats.hpp"

using namespace nd;

TEST_CASE("Optimizers are known by their names; others are no one's") {
  using formats::optimizer_of_name;
  for (const char* name : {"AdamW", "adam", "adamw_torch_fused", "torch.optim.AdamW", "FusedAdam", "FP32StateAdamWeightDecay"})
    CHECK(optimizer_of_name(name) == OptimizerKind::adamw);
  CHECK(optimizer_of_name("paged_adamw_8bit") == OptimizerKind::adamw_8bit);
  for (const char* name : {"Muon", "dist_muon"}) CHECK(optimizer_of_name(name) == OptimizerKind::muon);
  for (const char* name : {"SGD", "Momentum"}) CHECK(optimizer_of_name(name) == OptimizerKind::sgd);
  for (const char* name : {"FooBar", "adafactor", "lion", "lion_8bit", "Lamb", "adamw_anyprecision", ""}) CHECK_FALSE(optimizer_of_name(name));
}

TEST_CASE("An unknown optimizer is priced as AdamW, said, and counts as stated by nobody") {
  const DataStore data(ND_TEST_DATA_DIR);
  const auto folder = std::filesystem::temp_directory_path() / "nd_unknown_optimizer";
  std::filesystem::create_directories(folder);
  const auto checked = [&](const std::string& name, const std::string& text) {
    INFO(name);
    // The model's folder stays where it is.
    const std::string models = "../../models/";
    std::string placed = text;
    if (const auto at = placed.find(models); at != std::string::npos) placed.replace(at, models.size(), std::string(ND_TEST_DATA_DIR) + "/models/");
    std::ofstream(folder / name) << placed;
    const auto request = read_request((folder / name).string(), "", data);
    REQUIRE(request);
    CHECK(std::any_of(request->notes.begin(), request->notes.end(), [](const Diagnostic& note) {
      return note.severity == Severity::warning && note.message == "the optimizer 'FooBar' is not known: it is priced as AdamW, two states per parameter";
    }));
    CHECK(request->run.origins.at("optimizer").kind == Origin::Kind::fallback);
  };
  const auto with_name = [&](const std::string& file, const std::string& from, const std::string& to) {
    std::ifstream in(std::string(ND_TEST_DATA_DIR) + "/examples/" + file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  checked("run.toml", with_name("torchtitan/llama3_8b.toml", "\"AdamW\"", "\"FooBar\""));
  checked("mindformers.yaml", with_name("mindformers/llama3_70b.yaml", "type: AdamW", "type: FooBar"));
  checked("hyper.yaml", with_name("hyper_v2/llama31_8b_train.yaml", "_target_: hyper_parallel.components.optim.AdamW", "_target_: FooBar"));
  checked("run.sh", with_name("megatron/pretrain_llama31_70b.sh", "--bf16", "--bf16 --optimizer FooBar"));
  std::filesystem::remove_all(folder);
}
