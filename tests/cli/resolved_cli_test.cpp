// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;

std::string example(const std::string& name) { return std::string(ND_TEST_SOURCE_DIR) + "/data/examples/" + name; }

}  // namespace

TEST_CASE("A launch script is read, and comes back with the best strategy in it") {
  const Folder folder("resolved_script");
  const std::string out = folder.path("out"), script = example("megatron/pretrain_mixtral_8x7b.sh");
  const auto first = run_nd("-y " + script + " -A H100 -t 3 -o " + out);
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.out, Contains("resolved.sh"));
  const std::string text = read_file(out + "/resolved.sh");
  CHECK_THAT(text, Contains("# 32000 is a multiple already at TP 1"));  // comments stay
  CHECK(read_file(out + "/resolved/1.sh") == text);
  for (const char* name : {"/resolved.args", "/resolved/2.sh", "/resolved/3.sh", "/resolved/3.args"}) CHECK_FALSE(read_file(out + name).empty());
  // What was written is what --explain shows of the best candidate.
  const auto again = run_nd("-y " + out + "/resolved.sh -A H100 --explain file");
  CHECK(again.status == 0);
  const auto listed = run_nd("-y " + script + " -A H100 -t 1 --explain 1");
  const auto strategy = [](const std::string& all) {
    const auto at = all.rfind("\nrank 1");
    return at == std::string::npos ? all : all.substr(at);
  };
  CHECK_FALSE(strategy(listed.out).empty());
}

TEST_CASE("A launch script of other devices than -d comes back for those") {
  // SLURM_NNODES defaults to 4 nodes of 8: 64 devices are 8 of them, the rest of the launcher's words stays.
  const Folder folder("resolved_devices");
  const std::string out = folder.path("out");
  const auto run = run_nd("-y " + example("megatron/pretrain_mixtral_8x7b.sh") + " -A H100 -d 64 -o " + out);
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK_THAT(read_file(out + "/resolved.sh"), Contains("NNODES=${SLURM_NNODES:-\"8\"}"));
  CHECK_THAT(read_file(out + "/resolved.sh"), Contains("GPUS_PER_NODE=8"));
}

TEST_CASE("A run in three files comes back in three") {
  const Folder folder("resolved_three");
  const std::string out = folder.path("out"), in = example("hyperparallel2/llama31_8b/");
  const auto run = run_nd("-y " + in + "model.yaml --train-yaml " + in + "train.yaml --accelerate-yaml " + in + "accelerate.yaml -d 32 -t 1 -o " + out);
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK(read_file(out + "/resolved.yaml") == read_file(in + "model.yaml"));  // a model has no strategy
  const auto again = run_nd("-y " + out + "/resolved.yaml --train-yaml " + out + "/resolved.train.yaml --accelerate-yaml " + out + "/resolved.accelerate.yaml -d 32 --explain file");
  CHECK(again.status == 0);
}

TEST_CASE("The input is never written over") {
  const Folder folder("resolved_over");
  const std::string out = folder.path("out");
  REQUIRE(run_nd("-y " + example("megatron/pretrain_mixtral_8x7b.sh") + " -A H100 -o " + out).status == 0);
  const auto again = run_nd("-y " + out + "/resolved.sh -A H100 -o " + out);
  CHECK(again.status == 2);
  CHECK_THAT(again.err, Contains("is what -y reads and would be overwritten"));
}

TEST_CASE("A bare model has nothing to write a strategy into") {
  const Folder folder("resolved_preset");
  const auto outcome = run_nd("-y megatron-22b -d 16 -A H100 -o " + folder.path("out"));
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, !Contains("resolved.") || Contains("states no strategy"));
}

TEST_CASE("Another trainer than the file's is refused") {
  const auto outcome = run_nd("-y " + example("mindformers/llama3_70b.yaml") + " -f megatron-core");
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Contains("the input is a file of mindformers, not of megatron-core"));
  CHECK(run_nd("-y " + example("megatron/pretrain_llama31_70b.sh") + " -f megatron-core").status == 2);
  CHECK(run_nd("-y " + example("megatron/pretrain_llama31_70b.sh") + " -f hyper_v2").status == 3);
  CHECK(run_nd("-y megatron-22b -d 16 -A H100 -f megatron-core").status == 0);
}

TEST_CASE("Strict refuses what is not priced") {
  const Folder folder("resolved_strict");
  const std::string text = "torchrun --nproc_per_node 8 p.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
                           "--micro-batch-size 1 --vocab-size 32000 --bf16 --global-batch-size 8 ";
  CHECK(run_nd("-A H100 -y " + folder.write("plain.sh", text)).status == 0);
  CHECK(run_nd("--strict -A H100 -y " + folder.write("plain.sh", text)).status == 0);
  const auto unknown = run_nd("--strict -A H100 -y " + folder.write("unknown.sh", text + "--quux 1"));
  CHECK(unknown.status == 3);
  CHECK_THAT(unknown.err, Contains("--quux"));
  const auto priced = run_nd("--strict -A H100 -y " + folder.write("swap.sh", text + "--swap-attention"));
  CHECK(priced.status == 3);
  CHECK_THAT(priced.err, Contains("--swap-attention"));
  const auto open = run_nd("-A H100 -y " + folder.write("open.sh", text + "--tensor-model-parallel-size $TP"));
  CHECK(open.status == 3);
  CHECK_THAT(open.err, Contains("depends on TP, which the script does not set"));
}

}  // namespace nd::testing
