// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

const std::string kExamples = std::string(ND_TEST_SOURCE_DIR) + "/data/examples/";
const std::string kInvalid = std::string(ND_TEST_SOURCE_DIR) + "/tests/unit/formats/invalid/";

Json search(const std::string& options) {
  const auto outcome = run_nd(options + " --json -");
  INFO(options << "\n" << outcome.err);
  REQUIRE(outcome.status <= 1);
  return Json::parse(outcome.out);
}

void refused(const std::string& options, int status, const std::string& text) {
  const auto outcome = run_nd(options);
  INFO(options << "\n" << outcome.err << outcome.out.substr(0, 400));
  CHECK(outcome.status == status);
  CHECK_THAT(outcome.err, Contains(text));
}

}  // namespace

TEST_CASE("Every format of a run is searched as it is") {
  CHECK(search("-y " + kExamples + "torchtitan/llama3_8b.toml -d 64 -A H100 -t 1")["request"]["fields"]["framework"]["value"] == "torchtitan");
  CHECK(search("-f hyperparallel -y " + kExamples + "torchtitan/llama3_8b.toml -d 64 -A H100 -t 1")["request"]["fields"]["framework"]["value"] == "torchtitan");
  CHECK(search("-y " + kExamples + "deepspeed/zero3.json -m llama-3.1-8b -d 16 -A A800 -t 1")["candidates"].size() <= 1);
  CHECK(search("-y llama-3.1-8b --accelerate-yaml " + kExamples + "accelerate/fsdp.yaml -A A800 -t 1")["request"]["fields"]["devices"]["value"] == 16);
  CHECK(search("-y " + kExamples + "hf_trainer/sft.yaml -d 8 -A H100 -t 1")["request"]["fields"]["global_batch_size"]["value"] == 128);
  const std::string three = kExamples + "hyperparallel2/llama31_8b/";
  const auto document = search("-f hyperparallel2 -y " + three + "model.yaml --train-yaml " + three + "train.yaml --accelerate-yaml " + three + "accelerate.yaml -d 32 -A A2 -t 1");
  CHECK(document["request"]["fields"]["global_batch_size"]["value"] == 128);
}

TEST_CASE("A search config bounds the search of every format, and the engine never answers outside its lists") {
  for (const std::string& options : {"-s " + kExamples + "hyper_v2/llama31_8b_search.yaml", "-y " + kExamples + "hyper_v2/llama31_8b_search.yaml",
                                     "-y llama-3.1-8b -s " + kExamples + "hyper_v2/llama31_8b_search.yaml",
                                     "-y " + kExamples + "torchtitan/llama3_8b.toml -s " + kExamples + "hyper_v2/llama31_8b_search.yaml -d 32"}) {
    INFO(options);
    const auto document = search(options + " -t 50");
    for (const auto& c : document["candidates"]) {
      CHECK(c["ep"] == 1);
      CHECK((c["tp"] == 1 || c["tp"] == 2 || c["tp"] == 4 || c["tp"] == 8));
      CHECK((c["pp"] == 1 || c["pp"] == 2 || c["pp"] == 4));
      CHECK((c["cp"] == 1 || c["cp"] == 2));
      CHECK((c["op"] == 1 || c["op"] == 2 || c["op"] == 4 || c["op"] == 8));
      CHECK((c["recompute"] == "off" || c["recompute"] == "full"));
      CHECK(c["gbs"] == 128);
      CHECK(c["mbs"] == 1);
    }
    CHECK(document["budget_gib"] == 58);
  }
}

TEST_CASE("The command line wins over a search config") {
  const std::string base = "-s " + kExamples + "hyper_v2/llama31_8b_search.yaml";
  CHECK(search(base + " -d 64 -t 1")["request"]["fields"]["devices"]["value"] == 64);
  CHECK(search(base + " -b 256 -t 1")["request"]["fields"]["global_batch_size"]["value"] == 256);
  CHECK(search(base + " -M 40GB -t 1")["budget_gib"] == 40);
  const Json found = search(base + " --set tp=4 --recompute selective -t 20");
  for (const auto& c : found["candidates"]) {
    CHECK(c["tp"] == 4);
    CHECK(c["recompute"] == "selective");
  }
  refused(base + " -l PP", 2, "leaves out TP, which the search config varies");
}

TEST_CASE("Lists that leave nothing are an error that shows what they exclude") {
  const Folder folder("lists");
  const std::string model = "model: {name: llama, num_hidden_layers: 32, hidden_size: 4096, intermediate_size: 14336, num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 128256, "
                            "max_position_embeddings: 8192}\ncluster: {num_nodes: 4, cards_per_node: 8, device_type: A3}\nconstraint: {global_batch_size: 128}\nrecompute: auto\n";
  // dp 32 is the only possible one with tp = pp = cp = 1.
  refused("-s " + folder.write("dp.yaml", model + "parallelism: {tp: 1, pp: 1, cp: 1, dp: [2, 4]}\n"), 3, "dp.yaml:");
  // 8 billion parameters with all their states on one device of 30 GiB, whole.
  const auto whole = run_nd("-s " + folder.write("op.yaml", model + "parallelism: {fsdp: [1], tp: 1, pp: 1, cp: 1}\n") + " -M 30GB");
  INFO(whole.err);
  CHECK(whole.status == 3);
  CHECK_THAT(whole.err, Contains("op.yaml:5:21: parallelism.fsdp: nothing fits with this list; it excludes") && Contains("strategies that do, the best of them dp32"));
}

TEST_CASE("Wrong files are refused with all their problems, each at its place") {
  refused("-y " + kInvalid + "titan_bad_world.toml -d 16", 3, "titan_bad_world.toml:10:30: parallelism.data_parallel_shard_degree: the degrees multiply to 24");
  refused("-y " + kInvalid + "titan_unknown_flavor.toml -d 16", 3, "llama3 has no flavor '9B'");
  refused("-s " + kInvalid + "search_missing_train.yaml", 3, "search_missing_train.yaml:1:13");
  const auto outcome = run_nd("-s " + kInvalid + "search_many_errors.yaml");
  CHECK(outcome.status == 3);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') >= 13);
  refused("-y torchtitan.models.llama3:config -f torchtitan -d 8", 3, "names a Python function of a module");
  refused("-y " + kExamples + "accelerate/fsdp.yaml", 2, "the input states a run, but no model");
  refused("-y llama-3.1-8b --train-yaml nowhere.yaml -d 8", 2, "nowhere.yaml: no such file");
  refused("--train-yaml x.yaml -m llama-3.1-8b -d 8", 2, "--train-yaml: needs -y");
}

TEST_CASE("A dash is no file, except for the JSON document") {
  refused("-y - -d 8", 2, "error: -y: the standard input is not read");
  for (const char* const option : {"-o", "--ranking_csv", "--report", "--trace"}) refused("-y llama-3.1-8b -d 8 " + std::string(option) + " -", 2, "does not write to the standard output");
}

TEST_CASE("--strict refuses what changes the price and is not priced") {
  const Folder folder("strict");
  const std::string text = read_file(kExamples + "mindformers/qwen3_32b_mcore.yaml");
  REQUIRE(text.find("recompute_slice_activation: True") != std::string::npos);
  const auto path = folder.write("m.yaml", text);
  refused("-y " + path + " --strict", 3, "recompute_slice_activation: is not priced");
  CHECK(run_nd("-y " + path + " -t 1").status <= 1);
}

TEST_CASE("A sequence beyond what the model is made for is said") {
  CHECK_THAT(run_nd("-y llama-2-7b -d 64 -A A3 --seq-length 16384 -t 1").out, Contains("16384 tokens are more than the 4096 positions"));
  CHECK_THAT(run_nd("-y llama-2-7b -d 64 -A A3 --seq-length 4096 -t 1").out, !Contains("positions the model"));
}

TEST_CASE("--explain file names the field that cannot be") {
  const Folder folder("explain");
  std::string text = read_file(kExamples + "torchtitan/llama3_8b.toml");
  text.replace(text.find("tensor_parallel_degree = 1"), 26, "tensor_parallel_degree = 3");
  text.replace(text.find("data_parallel_shard_degree = -1"), 31, "data_parallel_shard_degree = 4 ");
  const auto path = folder.write("t.toml", text);
  const auto outcome = run_nd("-y " + path + " -d 12 -A H100 --explain file");
  INFO(outcome.err);
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.err, Contains("the stated strategy cannot run: tp=3 is impossible") && Contains("nearest possible") && Contains("t.toml:"));
  CHECK(run_nd("-y " + kExamples + "hyper_v2/deepseek_v3_legacy_train.yaml -A A2 --explain file").status <= 1);
}

TEST_CASE("Help to a full disk fails") {
  const std::string program = ND_TEST_RUN_ND;
  for (const char* const option : {" --help", " --version", " --list devices"})
    CHECK(std::system((program + option + " >/dev/full 2>/dev/null").c_str()) != 0);  // NOLINT: the shell opens the device
}

}  // namespace nd::testing
