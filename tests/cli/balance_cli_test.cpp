// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

const std::string kScript = "-y " ND_TEST_DATA_DIR "/examples/megatron/pretrain_deepseek3_671b.sh -d 1024 -A A3 ";

std::int64_t layers_of(const Json& balance) {
  std::int64_t sum = 0;
  for (const auto& chunk : balance["layers_per_chunk"])
    for (const auto& stage : chunk) sum += stage.get<std::int64_t>();
  return sum;
}

}  // namespace

TEST_CASE("Balanced layers, -k: the layout is written back and priced the same when it is read") {
  const Folder folder("balance");
  const auto outcome = run_nd(kScript + "--set pp=16 --set vpp=1 --set ep=16 --schedule 1f1b --recompute full -t 1 -k 0 -o " + folder.path("out"));
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("layers per stage of rank 1") && Contains("against the even split -") && Contains("wrote " + folder.path("out/resolved_balanced.sh")));
  const Json balance = Json::parse(read_file(folder.path("out/search.json")))["balance"];
  CHECK(layers_of(balance) == 61);  // DeepSeek-V3
  CHECK(balance["pipeline_s"].get<double>() < balance["even_pipeline_s"].get<double>());
  CHECK(balance["bound_s"].get<double>() <= balance["pipeline_s"].get<double>());
  const auto again = run_nd("-y " + folder.path("out/resolved_balanced.sh") + " -d 1024 -A A3 -t 1 --json -");
  REQUIRE(again.status == 0);
  const Json stated = Json::parse(again.out)["baselines"][0];
  CHECK(stated["kind"] == "stated");
  CHECK(stated["candidate"]["step_time_s"].get<double>() == Approx(balance["step_time_s"].get<double>()).epsilon(1e-12));

  // What other balancers are told: every layer of the model once, times relative to the first kind of layer.
  const Json list = Json::parse(read_file(folder.path("out/pretrain_deepseek3_671b_nd_to_ppb_0.json")))["layers_description"];
  REQUIRE(list.size() == 4);
  std::int64_t layers = 0;
  for (const auto& layer : list)
    if (layer["type"] == "BODY") {
      layers += layer["nb_layer"].get<std::int64_t>();
      CHECK(layer["memory_recompute"].get<double>() < layer["memory_activation"].get<double>());
      CHECK(layer["recompute_time"].get<double>() > layer["backward_time"].get<double>());
    }
  CHECK(layers == 61);
  CHECK(list[0]["type"] == "HEAD");
  CHECK(list[1]["forward_time"] == 1.0);
  CHECK(list[3]["type"] == "TAIL");
}

TEST_CASE("Potentials, -rp: a row per plan, from the ranked plan to full recompute") {
  const Folder folder("potentials");
  const std::string llama = "-y llama-3.1-70b -d 64 -A A2 --seq-length 8192 --set tp=4 --set pp=4 --set vpp=1 -ar -t 1 ";
  const auto outcome = run_nd(llama + "-rp -o " + folder.path("out"));
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const std::string text = read_file(folder.path("out/recompute_potentials.csv"));
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines.push_back(text.substr(at, text.find('\n', at) - at));
  REQUIRE(lines.size() > 10);
  CHECK(lines[0].find("rank,step,tp,pp,") == 0);
  CHECK(lines[1].find("1,0,4,4,") == 0);
  CHECK_THAT(lines.back(), Contains(",80,") && !Contains(" off") && Contains("stage 3 chunk 0 kind 0: 20 full"));  // all 80 layers
  CHECK_THAT(read_file(folder.path("out/recompute_potentials.svg")), Contains("step time, s") && Contains("80 layers in full"));
  CHECK_THAT(run_nd(llama + "-rp").err, Contains("error: -rp: needs -o"));
  CHECK_THAT(run_nd(llama + "-rp --recompute off selective -o " + folder.path("none")).err, Contains("error: -rp: recomputes layers in full, which --recompute leaves out"));
  CHECK_THAT(run_nd("-y llama-3.1-70b -d 64 -A A2 -rp -o " + folder.path("none")).err, Contains("error: -rp: needs -ar"));
}

TEST_CASE("Balanced layers, -k: chunks, what has no layout, ranks that are not there") {
  const std::string llama = "-y llama-3.1-70b -d 64 -A H100 -b 128 --set tp=8 -t 2 --json - ";
  const auto chunks = run_nd(llama + "--set pp=4 --set vpp=5 -k 1");
  REQUIRE(chunks.status == 0);
  const Json balance = Json::parse(chunks.out)["balance"];
  CHECK(balance["rank"] == 2);
  CHECK(balance["layers_per_chunk"].size() == 5);
  CHECK(layers_of(balance) == 80);
  CHECK(balance["proven"] == false);
  const auto flat = run_nd(llama + "--set pp=1 -k 0");
  REQUIRE(flat.status == 0);
  CHECK(Json::parse(flat.out)["balance"]["problem"] == "one stage holds all layers");
  const auto beyond = run_nd("-y llama-3.1-70b -d 64 -A H100 -b 128 --set tp=8 --set pp=4 --set vpp=1 --set cp=1 --set zero=1 --set recompute=full -k 5000");
  CHECK(beyond.status == 2);
  CHECK_THAT(beyond.err, Contains("error: -k: only ") && Contains("candidates fit, counted from 0"));
}

}  // namespace nd::testing
