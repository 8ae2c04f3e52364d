// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "process.hpp"
#include "support/json_schema.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

Json search(const std::string& options, int status = 0) {
  const auto outcome = run_nd(options + " --json -");
  INFO(options << "\n" << outcome.err);
  REQUIRE(outcome.status == status);
  return Json::parse(outcome.out);
}

const std::string kLlama = "-y llama-3.1-8b -d 64 -A A3";

}  // namespace

TEST_CASE("A search prints its ranking and exits with 0") {
  const auto outcome = run_nd(kLlama);
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  for (const char* part : {"llama-3.1-8b", "8.03 B", "64 x", "legal", "rank", "MFU", "best", "assumed, nobody stated it"})
    CHECK_THAT(outcome.out, Contains(part));
}

TEST_CASE("The document is complete and follows its schema") {
  const Json document = search(kLlama);
  const Json schema = Json::parse(read_file(std::string(ND_TEST_SOURCE_DIR) + "/data/schema/search.schema.json"));
  for (const auto& problem : schema_problems(document, schema)) FAIL_CHECK(problem);
  CHECK(document["candidates"].size() == 100);  // a document without -t
  CHECK(document["model"]["parameters"] == 8030261248);  // Llama 3.1 8B, exact count of the checkpoint
  for (const auto& c : document["candidates"]) {
    CHECK(c["dp"].get<int>() * c["tp"].get<int>() * c["pp"].get<int>() * c["cp"].get<int>() == 64);
    CHECK(c["dp"].get<int>() * c["mbs"].get<int>() * c["mb"].get<int>() == c["gbs"].get<int>());
    CHECK(c["memory_gib"]["peak"].get<double>() <= c["memory_gib"]["budget"].get<double>());
  }
}

TEST_CASE("A document says what its prices depend on: each digest changes with its own part") {
  const Json base = search("-y llama-3.1-8b -d 16 -A A3 -t 1")["fingerprint"];
  const auto changed = [&base](const std::string& request) {
    std::vector<std::string> out;
    const Json now = search(request)["fingerprint"];
    for (const auto& [name, digest] : base.items())
      if (now[name] != digest) out.push_back(name);
    return out;
  };
  CHECK(base.size() == 5);
  CHECK(changed("-y llama-3.1-8b -d 32 -A A3 -b 64 -t 2").empty());
  CHECK(changed("-y qwen3-8b -d 16 -A A3 -t 1") == std::vector<std::string>{"model"});
  CHECK(changed("-y llama-3.1-8b -d 16 -A A3 -f mindformers -t 1") == std::vector<std::string>{"framework"});
  CHECK(changed("-y llama-3.1-8b -d 16 -A A3 -f mindspeed-llm -swap_os -t 1") == std::vector<std::string>{"framework"});
  CHECK(changed("-y llama-3.1-8b -d 16 -A H100 -f mindspeed-llm -t 1") == std::vector<std::string>{"device"});
}

TEST_CASE("Documents of every kind of model and device follow the schema") {
  // Experts on Ascend: exposed shares above 1 once made hidden seconds negative. Also a hybrid and a dense model elsewhere.
  const Json schema = Json::parse(read_file(std::string(ND_TEST_SOURCE_DIR) + "/data/schema/search.schema.json"));
  for (const char* request : {"-y mixtral-8x7b -d 64 -A A2", "-y qwen3-30b-a3b -d 64 -A A3", "-y qwen3-next-80b-a3b -d 64 -A H100",
                              "-y llama-2-7b -d 32 -A V100"}) {
    INFO(request);
    for (const auto& problem : schema_problems(search(request), schema)) FAIL_CHECK(problem);
  }
}

TEST_CASE("-ar gives every layer its mode, says which, and never answers outside the modes") {
  // On half a device 70 B parameters need recomputation on the first stages only.
  const std::string request = "-y llama-3.1-70b -d 64 -A A2 --seq-length 8192 --set tp=1 --set pp=32 --set cp=2 --set vpp=1 -ar";
  const Json document = search(request);
  const Json schema = Json::parse(read_file(std::string(ND_TEST_SOURCE_DIR) + "/data/schema/search.schema.json"));
  for (const auto& problem : schema_problems(document, schema)) FAIL_CHECK(problem);
  REQUIRE(!document["candidates"].empty());
  const auto& best = document["candidates"][0];
  CHECK(best["recompute"] == "per_layer");
  std::map<std::string, int> layers;
  for (const auto& range : best["plan"]["layers"]) layers[range["recompute"].get<std::string>()] += range["count"].get<int>();
  CHECK(layers["off"] > 0);
  CHECK(layers["off"] < 80);
  CHECK(layers["off"] + layers["selective"] + layers["full"] == 80);
  CHECK(best["plan"]["stages_gib"].size() == 32);
  for (const auto& stage : best["plan"]["stages_gib"]) CHECK(stage["warm_up"].get<double>() <= best["memory_gib"]["budget"].get<double>());
  CHECK(best["plan"]["saved_s"].get<double>() > 0);
  const Json found = search(request + " --recompute off full");
  for (const auto& range : found["candidates"][0]["plan"]["layers"]) CHECK(range["recompute"] != "selective");
  CHECK_THAT(run_nd(request + " --explain 1").out, Contains("Recompute by layer"));
  CHECK(run_nd("-y llama-3.1-70b -d 64 -A A2 -mppb").status == 2);
  CHECK(run_nd(request + " -mppb").status == 2);
  CHECK(run_nd(request + " --recompute auto off").status == 2);
  CHECK(run_nd(request + " --set recompute=off").status == 2);
}

TEST_CASE("Options change what they say") {
  CHECK(search(kLlama + " -t 3")["candidates"].size() == 3);
  CHECK(search(kLlama + " -b 128")["request"]["fields"]["global_batch_size"]["value"] == 128);
  CHECK(search(kLlama + " --seq-length 8192")["request"]["fields"]["seq_length"]["value"] == 8192);
  CHECK(search(kLlama + " --seq_length=8192")["request"]["fields"]["seq_length"]["value"] == 8192);
  CHECK(search(kLlama + " -M 40GB")["budget_gib"] == 40);
  CHECK(search(kLlama + " -M 40GB -mem 2048MB")["budget_gib"] == 38);
  const Json found2 = search(kLlama + " --set tp=2,4 --set pp<=2 --recompute full");
  for (const auto& c : found2["candidates"]) {
    CHECK((c["tp"] == 2 || c["tp"] == 4));
    CHECK(c["pp"] <= 2);
    CHECK(c["recompute"] == "full");
  }
  const auto all = search(kLlama + " --set tp=8 --set recompute=off --all");
  CHECK(all["candidates"].size() == all["counts"]["fitting"]);
  CHECK(search(kLlama + " --timings -j 2")["jobs"] == 2);
}

TEST_CASE("Dimensions off the list stay as they are") {
  const Json found3 = search(kLlama + " -l PP MBS RECOMPUTE");
  for (const auto& c : found3["candidates"]) {
    CHECK(c["tp"] == 1);
    CHECK(c["cp"] == 1);
  }
  CHECK_THAT(run_nd(kLlama + " -l PP MBS RECOMPUTE").out, Contains("not searched, nobody states it: tp=1"));
}

TEST_CASE("A MoE model searches expert parallelism") {
  const auto document = search("-y qwen3-30b-a3b -d 16 -A A3");
  bool experts = false;
  for (const auto& c : document["candidates"]) {
    experts = experts || c["ep"] > 1;
    CHECK(c["dp"].get<int>() * c["tp"].get<int>() * c["cp"].get<int>() % (c["ep"].get<int>() * c["etp"].get<int>()) == 0);
  }
  CHECK(experts);
}

TEST_CASE("Nothing fits: status 1 and the closest misses") {
  const auto outcome = run_nd("-y llama-3.1-405b -d 8 -A A3");
  CHECK(outcome.status == 1);
  for (const char* part : {"Nothing fits. The closest:", "lacks", "would fit with", "devices with"}) CHECK_THAT(outcome.out, Contains(part));
  const auto document = search("-y llama-3.1-405b -d 8 -A A3", 1);
  CHECK(document["candidates"].empty());
  CHECK(document["near_misses"].size() == 5);
}

TEST_CASE("Explanations") {
  const auto ranked = run_nd(kLlama + " --explain 2");
  CHECK(ranked.status == 0);
  for (const char* part : {"Rank 2", "What stage", "FW_COMPUTE", "optimizer_states"}) CHECK_THAT(ranked.out, Contains(part));
  const auto beyond = run_nd(kLlama + " --set tp=8 --set recompute=full --set pp=8 --explain 100000");
  CHECK(beyond.status == 2);
  CHECK_THAT(beyond.err, Contains("error: --explain: only "));
}

TEST_CASE("The strategy that a file states") {
  const std::string file = std::string(ND_TEST_SOURCE_DIR) + "/data/examples/mindformers/qwen3_32b_mcore.yaml";
  const auto stated = run_nd("-y " + file + " --explain file");
  INFO(stated.err);
  CHECK((stated.status == 0 || stated.status == 1));
  for (const char* part : {"The stated strategy", "What stage", "FW_COMPUTE"}) CHECK_THAT(stated.out, Contains(part));
  // On other devices its degrees need not multiply to anything; the search does without them.
  CHECK(run_nd("-y " + file + " -d 24 -b 48 -t 1").status <= 1);
}

TEST_CASE("Files go where they are asked to, and nowhere else") {
  const Folder folder("files");
  const auto outcome = run_nd(kLlama + " -o " + folder.path("deep/out"));
  CHECK(outcome.status == 0);
  CHECK(folder.files() == 5);  // two folders, ranking.csv, search.json, report.html
  CHECK_THAT(outcome.out, Contains("wrote " + folder.path("deep/out/ranking.csv")));
  CHECK(Json::parse(read_file(folder.path("deep/out/search.json")))["schema"] == "nd/search/1");
}

TEST_CASE("Verbosity changes only what is printed") {
  CHECK(run_nd(kLlama + " -v 0").out.empty());
  CHECK_THAT(run_nd(kLlama + " -v 1").out, !Contains("assumed"));
  CHECK_THAT(run_nd(kLlama + " -v 3").out, Contains("first example of each reason"));
}

TEST_CASE("Lists") {
  for (const char* what : {"devices", "models", "frameworks", "formats", "dimensions", "schedules"}) {
    const auto outcome = run_nd(std::string("--list ") + what);
    CHECK(outcome.status == 0);
    CHECK(outcome.out.size() > 20);
  }
  CHECK_THAT(run_nd("--list devices").out, Contains("h100-sxm-80"));
  CHECK_THAT(run_nd("--list dimensions").out, Contains("TP, MP"));
}

TEST_CASE("Help, version, lists by name") {
  CHECK_THAT(run_nd("--help").out, Contains("--top_config_number K"));
  CHECK_THAT(run_nd("--version").out, Contains("run_nd 0."));
  CHECK(run_nd("devices").out == run_nd("--list devices").out);
}

}  // namespace nd::testing
