// SPDX-License-Identifier: Apache-2.0
// Scenario files of the old harness: the numbers are those of its defects, the expectations what their authors meant.
#include <algorithm>
#include <catch2/catch.hpp>

#include "folder.hpp"
#include "nd/campaign.hpp"

namespace {

using nd::testing::Folder;

const char* const kDefaults = "learning_rate: 1e-4\ngradient_accumulation_steps: 1\nevaluation_strategy: \"no\"\ngradient_checkpointing: True\nresponse_template: \"\\n### Response:\"\n";
const char* const kContents =
    "framework_configs:\n  - shortname: foak\n    plugins: [fused-ops]\n    filename: foak-sample.yaml\n  - shortname: bnb\n    plugins: [peft]\n    filename: bnb-sample.yaml\n";

struct Files {
  Folder folder{"fms"};
  nd::FmsRequest request;
  explicit Files(const std::string& scenarios) {
    request.scenarios = folder.write("scenarios.yaml", scenarios);
    request.defaults = folder.write("defaults.yaml", kDefaults);
    request.contents = folder.write("CONTENTS.yaml", kContents);
  }
  [[nodiscard]] nd::Campaign plan() const {
    auto plan = nd::plan_fms(request);
    if (!plan)
      for (const auto& one : plan.error().diagnostics) UNSCOPED_INFO(nd::to_text(one));
    REQUIRE(plan.has_value());
    return std::move(*plan);
  }
  [[nodiscard]] std::string refused() const {
    const auto plan = nd::plan_fms(request);
    REQUIRE_FALSE(plan.has_value());
    std::string out;
    for (const auto& one : plan.error().diagnostics) out += nd::to_text(one) + "\n";
    return out;
  }
};

std::string value(const nd::PlannedRun& run, const std::string& name) {
  for (const auto& argument : run.arguments)
    if (argument.name == name) {
      std::string out;
      for (const auto& one : argument.values) out += (out.empty() ? "" : " ") + one;
      return out;
    }
  return "(absent)";
}
std::string fact(const nd::PlannedRun& run, const std::string& name) {
  for (const auto& [key, text] : run.facts)
    if (key == name) return text;
  return "(absent)";
}

const char* const kTwoModels =
    "scenarios:\n  - name: a\n    framework_config: [foak, bnb]\n    arguments:\n      model_name_or_path: [org/m1, org/m2]\n      target_modules: [q_proj, v_proj]\n      fp16: True\n";

}  // namespace

TEST_CASE("the product has the first name slowest and the last fastest", "[fms]") {
  Files files(kTwoModels);
  const auto plan = files.plan();
  // 2 models x 2 configurations x batches 4, 8 x devices 1, 2 x packing True x length 4096: the matrices' own defaults.
  REQUIRE(plan.runs.size() == 16);
  const auto point = [&](std::size_t i) {
    const auto& run = plan.runs[i];
    return value(run, "model_name_or_path") + " " + fact(run, "framework_config") + " " + fact(run, "effective_batch_size") + " " + std::to_string(run.devices);
  };
  CHECK(point(0) == "org/m1 foak 4 1");
  CHECK(point(1) == "org/m1 foak 4 2");
  CHECK(point(2) == "org/m1 foak 8 1");
  CHECK(point(4) == "org/m1 bnb 4 1");
  CHECK(point(8) == "org/m2 foak 4 1");
  CHECK(value(plan.runs[0], "target_modules") == "q_proj v_proj");  // a list is one argument, not a dimension
  CHECK(value(plan.runs[0], "fp16") == "True");
  CHECK(value(plan.runs[0], "evaluation_strategy") == "no");
  CHECK(value(plan.runs[0], "output_dir") == "{run_dir}/hf");
  CHECK(value(plan.runs[0], "num_gpus") == "(absent)");
  REQUIRE(plan.runs[0].environment.size() == 1);
  CHECK(plan.runs[0].environment[0].second == files.folder.path("foak-sample.yaml"));
}

TEST_CASE("a batch is divided exactly or the run is skipped by name", "[fms]") {
  // Defects 2 and 3: 4 on 8 devices made a per-device batch of 0, 6 on 4 a global batch of 4; accumulation was left out.
  Files files("scenarios:\n  - name: a\n    arguments:\n      model_name_or_path: m\n      gradient_accumulation_steps: 2\n");
  files.request.effective_batch_size = {4, 6, 16};
  files.request.num_gpus = {4, 8};
  const auto plan = files.plan();
  REQUIRE(plan.runs.size() == 6);
  CHECK(plan.runs[0].skip == "effective batch 4 is no multiple of 4 devices x 1 x 2 accumulation steps");
  CHECK_FALSE(plan.runs[1].skip.empty());
  CHECK_FALSE(plan.runs[2].skip.empty());
  CHECK_FALSE(plan.runs[3].skip.empty());
  CHECK(value(plan.runs[4], "per_device_train_batch_size") == "2");  // 16 = 4 x 2 x 2
  CHECK(fact(plan.runs[4], "gbs") == "16");
  CHECK(value(plan.runs[5], "per_device_train_batch_size") == "1");  // 16 = 8 x 1 x 2
}

TEST_CASE("accumulation follows from a stated micro-batch, null hides the default", "[fms]") {
  Files files("scenarios:\n  - name: moe\n    arguments:\n      model_name_or_path: m\n      gradient_accumulation_steps: null\n      per_device_train_batch_size: 8\n");
  files.request.effective_batch_size = {128, 100, 4};
  files.request.num_gpus = {4};
  const auto plan = files.plan();
  REQUIRE(plan.runs.size() == 3);
  CHECK(value(plan.runs[0], "gradient_accumulation_steps") == "4");  // 128 = 4 x 8 x 4
  CHECK_FALSE(plan.runs[1].skip.empty());
  CHECK_FALSE(plan.runs[2].skip.empty());
}

TEST_CASE("command line above scenario above defaults, without repeated runs", "[fms]") {
  // Defects 4 and 6: constants won over stated matrices and the runs were repeated; one scenario changed the defaults of the next.
  Files files(
      "scenarios:\n  - name: a\n    arguments: {model_name_or_path: m, packing: False, learning_rate: 2e-5, gradient_accumulation_steps: null}\n"
      "  - name: b\n    arguments: {model_name_or_path: m2}\n");
  files.request.num_gpus = {1};
  files.request.effective_batch_size = {4};
  auto plan = files.plan();
  REQUIRE(plan.runs.size() == 2);
  CHECK(value(plan.runs[0], "packing") == "False");
  CHECK(value(plan.runs[0], "learning_rate") == "2e-5");
  CHECK(value(plan.runs[1], "learning_rate") == "1e-4");
  CHECK(value(plan.runs[1], "gradient_accumulation_steps") == "1");
  files.request.packing = {true, true};
  plan = files.plan();
  CHECK(plan.runs.size() == 2);  // the same value twice is one run
  CHECK(value(plan.runs[0], "packing") == "True");
  CHECK(std::any_of(plan.notes.begin(), plan.notes.end(), [](const auto& note) { return note.message == "packing is overridden by the command line"; }));
}

TEST_CASE("names that are none are refused, all at once", "[fms]") {
  Files files("scenarios:\n  - name: a\n    framework_config: [foka]\n    argumnets: {}\n    arguments: {model_name_or_path: m}\n");
  const auto text = files.refused();
  CHECK(text.find("there is no framework configuration 'foka' (did you mean 'foak'?)") != std::string::npos);
  CHECK(text.find("argumnets") != std::string::npos);
  files.request.only = {"b"};
  CHECK(files.refused().find("there is no scenario 'b'") != std::string::npos);
}

TEST_CASE("one model name is one model, two dashes are no option, slow runs only when named", "[fms]") {
  Files files(
      "scenarios:\n  - name: a\n    framework_config:\n      -\n      - foak\n    arguments: {model_name_or_path: org/a--b}\n"
      "  - name: s\n    slow: True\n    framework_config: [of a later version]\n    arguments: {model_name_or_path: m}\n");
  files.request.num_gpus = {1};
  files.request.effective_batch_size = {4};
  auto plan = files.plan();
  REQUIRE(plan.runs.size() == 2);  // defects 8 and 12
  CHECK(value(plan.runs[0], "model_name_or_path") == "org/a--b");
  CHECK(plan.runs[0].environment.empty());
  CHECK(fact(plan.runs[0], "framework_config") == "none");
  files.request.only = {"s"};
  CHECK(files.refused().find("there is no framework configuration 'of a later version'") != std::string::npos);
  files.request.framework_configs = {{"of a later version", "later.yaml"}};
  plan = files.plan();
  REQUIRE(plan.runs.size() == 1);
  CHECK(plan.runs[0].environment[0].second == "later.yaml");
}

TEST_CASE("an identity stays when the file around the run changes", "[fms]") {
  Files files(kTwoModels);  // defects 14 and 25: runs were known by their position
  const auto before = files.plan();
  files.folder.write("scenarios.yaml", "scenarios:\n  - name: other\n    arguments: {model_name_or_path: x}\n" + std::string(kTwoModels).substr(11));
  files.request.num_gpus = {2, 1};
  const auto after = files.plan();
  for (const auto& run : before.runs)
    CHECK(std::any_of(after.runs.begin(), after.runs.end(), [&](const auto& one) { return one.id == run.id && value(one, "model_name_or_path") == value(run, "model_name_or_path"); }));
}
