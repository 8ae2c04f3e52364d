// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "process.hpp"

namespace nd::testing {
namespace {

using Json = nlohmann::json;

// One strategy with the 128 experts of a layer on 16 ranks.
const std::string kOneStrategy =
    "-y qwen3-30b-a3b -d 16 -A H100 -b 64 --seq-length 1024 --set tp=1 --set pp=1 --set cp=1 --set ep=16 --set mbs=1 --recompute off --set zero=1 -t 1 --json -";

struct Price {
  double activations = 0, step = 0;
};

Price price(const std::string& load) {
  const auto outcome = run_nd(kOneStrategy + load);
  INFO(load << "\n" << outcome.err);
  REQUIRE(outcome.status == 0);
  const Json document = Json::parse(outcome.out);
  const Json& best = document["candidates"][0];
  return {best["memory_gib"]["stages"][0]["parts"]["activations"].get<double>(), best["step_time_s"].get<double>()};
}

}  // namespace

TEST_CASE("The distribution of tokens over experts changes memory and time") {
  const Price even = price(" --expert-load uniform");
  const Price zipf = price(" --expert-load zipf:0.2");
  const Price steep = price(" --expert-load zipf:0.5");
  CHECK(zipf.activations > even.activations);
  CHECK(zipf.step > even.step);
  CHECK(steep.activations > zipf.activations);
  CHECK(steep.step > zipf.step);

  // A measured list that is even is the even one; from a file as well as in words.
  std::string ones = "1";
  for (int i = 1; i < 128; ++i) ones += ",1";
  CHECK(price(" --expert-load " + ones).step == even.step);
  std::string list;  // the eight experts of the first rank get three times as much
  for (int i = 0; i < 128; ++i) list += i < 8 ? "3\n" : "1\n";
  const Folder folder("expert_load");
  const std::string path = folder.write("loads.txt", list);
  const Price measured = price(" --expert-load " + path);
  CHECK(measured.activations > even.activations);
  CHECK(measured.step > even.step);
}

TEST_CASE("A distribution that no layer has is refused with the place and a way out") {
  for (const char* bad : {"zipf:99", "fair", "1,2,3", "1,-1"}) {
    const auto outcome = run_nd(kOneStrategy + " --expert-load " + bad);
    INFO(bad << "\n" << outcome.err);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find("--expert-load") != std::string::npos);
  }
  const auto dense = run_nd("-y llama-3.1-8b -d 16 -A H100 --expert-load uniform");
  CHECK(dense.status != 0);
  CHECK(dense.err.find("without experts") != std::string::npos);
}

}  // namespace nd::testing
