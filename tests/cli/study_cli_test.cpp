// SPDX-License-Identifier: Apache-2.0
// Questions above one search: --what-if, -d A..B, and what is shown for comparison.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "process.hpp"
#include "support/json_schema.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

const std::string kSmall = "-y llama-3.1-8b -A A3 --set mbs=1 --recompute off full ";

Json study(const std::string& options, int status = 0) {
  const auto outcome = run_nd(kSmall + options + " --json -");
  INFO(options << "\n" << outcome.err);
  REQUIRE(outcome.status == status);
  Json document = Json::parse(outcome.out);
  const Json schema = Json::parse(read_file(std::string(ND_TEST_DATA_DIR) + "/schema/study.schema.json"));
  for (const auto& problem : schema_problems(document, schema)) FAIL_CHECK(problem);
  return document;
}

/// The best candidate of the plain search for the same request.
Json best(const std::string& options) {
  const auto outcome = run_nd(kSmall + options + " -t 1 --json -");
  INFO(options << "\n" << outcome.err);
  REQUIRE(outcome.status == 0);
  return Json::parse(outcome.out)["candidates"][0];
}

}  // namespace

TEST_CASE("--what-if: every row is the search one would get by asking for it") {
  const auto rows = study("-d 16 -b 64 --what-if devices=32 --what-if seq=2048,16384 --what-if batch=128 --what-if device=H100 --what-if memory=40GB --what-if tp=2")["rows"];
  REQUIRE(rows.size() == 8);
  const char* asked[] = {"-d 16 -b 64", "-d 32 -b 64", "-d 16 -b 64 --seq-length 2048", "-d 16 -b 64 --seq-length 16384", "-d 16 -b 128",
                         "-d 16 -b 64 -A H100", "-d 16 -b 64 -M 40GB", "-d 16 -b 64 --set tp=2"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(asked[i]);
    std::string request = asked[i];
    const Json single = Json::parse(run_nd((request.find("-A") == std::string::npos ? kSmall : "-y llama-3.1-8b --set mbs=1 --recompute off full ") + request + " -t 1 --json -").out)["candidates"][0];
    CHECK(rows[i]["best"]["step_time_s"] == single["step_time_s"]);
    CHECK(rows[i]["best"]["dp"] == single["dp"]);
    CHECK(rows[i]["best"]["memory_gib"] == single["memory_gib"]["peak"]);
  }
  CHECK(rows[0]["name"] == "as it stands");
  CHECK(rows[2]["name"] == "seq=2048");
}

TEST_CASE("--what-if: changes that no option states") {
  const auto rows = study("-d 16 -b 64 --what-if bandwidth=2x,1x --what-if bandwidth.node=0.5x --what-if memory=200GB")["rows"];
  const auto step = [&rows](std::size_t i) { return rows[i]["best"]["step_time_s"].get<double>(); };
  CHECK(step(1) < step(0));
  CHECK(step(2) == step(0));
  CHECK(step(3) > step(0));
  CHECK(rows[4]["best"]["budget_gib"] == 200);
  CHECK(step(4) <= step(0));
}

TEST_CASE("--what-if: joined changes are every combination") {
  const auto rows = study("-d 16 -b 64 --what-if devices=16,32+batch=64,128")["rows"];
  REQUIRE(rows.size() == 5);
  CHECK(rows[4]["name"] == "devices=32 batch=128");
  CHECK(rows[4]["devices"] == 32);
  CHECK(rows[4]["global_batch_size"] == 128);
  CHECK(rows[1]["best"]["step_time_s"] == rows[0]["best"]["step_time_s"]);
}

TEST_CASE("--what-if: a case that cannot be is a row with its reason, a wrong word is refused") {
  const auto rows = study("-d 16 -b 64 --what-if tp=3")["rows"];
  CHECK_THAT(rows[1]["problem"].get<std::string>(), Contains("tp=3 is impossible"));
  CHECK_THAT(run_nd(kSmall + "-d 16 --what-if tp=3").out, Contains("tp=3: not possible: tp=3 is impossible"));
  struct Wrong {
    const char *words, *message;
  };
  for (const auto& [words, message] : {Wrong{"devices", "is no change"}, Wrong{"devices=x", "must be a whole number from 1"}, Wrong{"device=H10O", "did you mean"},
                                       Wrong{"devcies=3", "did you mean 'devices'?"}, Wrong{"bandwidth=fast", "is no factor"}, Wrong{"bandwidth.nod=2x", "no network level 'nod'"},
                                       Wrong{"memory=3", "is no amount of memory"}, Wrong{"seq=1,", "a value is missing"}, Wrong{"framework=x", "unknown framework"},
                                       Wrong{"devices<=3", "takes one value"}, Wrong{"devices.a=3", "has no parts"}}) {
    INFO(words);
    const auto outcome = run_nd(kSmall + "-d 16 --what-if " + words);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains(message));
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("--what-if: tokens make days, device-hours and cost") {
  const auto rows = study("-d 16 -b 64 --what-if devices=32 --tokens 2T --price 3")["rows"];
  for (const auto& row : rows) {
    const double days = 2e12 / row["tokens_per_s"].get<double>() / 86400;
    CHECK(row["days"].get<double>() == Approx(days));
    CHECK(row["device_hours"].get<double>() == Approx(days * 24 * row["devices"].get<double>()));
    CHECK(row["cost"].get<double>() == Approx(3 * days * 24 * row["devices"].get<double>()));
  }
}

TEST_CASE("-d A..B: one search per cluster, and the smallest that meets a deadline") {
  const auto document = study("-d 8..64 -b 128 --tokens 100B --deadline-days 15");
  const auto& rows = document["rows"];
  REQUIRE(rows.size() >= 4);
  for (const auto& row : rows) {
    if (!row.contains("best")) continue;
    const auto single = best("-b 128 -d " + std::to_string(row["devices"].get<int>()));
    CHECK(row["best"]["step_time_s"] == single["step_time_s"]);
    CHECK(row["days"].get<double>() == Approx(100e9 / (single["tokens_per_s_per_device"].get<double>() * row["devices"].get<double>()) / 86400));
  }
  int answer = 0;
  for (const auto& row : rows)
    if (answer == 0 && row.contains("best") && row["days"] <= 15) answer = row["devices"];
  CHECK(document["answer"] == answer);
  CHECK_THAT(run_nd(kSmall + "-d 8..64 -b 128 --tokens 100B --deadline-days 15").out, Contains(std::to_string(answer) + " x ascend-910c-die is the smallest of these"));
}

TEST_CASE("-d A..B: exit status") {
  CHECK(study("-d 8..16 -b 64")["answer"].is_null());
  study("-d 8..16 -b 64 --tokens 100T --deadline-days 1", 1);
  const auto outcome = run_nd("-y llama-3.1-405b -d 1..2 -A A3 --set mbs=1");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("nothing fits"));
  CHECK(run_nd(kSmall + "-d 8..4").status == 2);
  CHECK(run_nd(kSmall + "-d 8..16 --deadline-days 3").status == 2);
  CHECK(run_nd(kSmall + "-d 8..16 --what-if seq=8192").status == 2);
}

TEST_CASE("Beside the winner: data parallelism alone, and the strategy of the file") {
  const std::string file = std::string(ND_TEST_DATA_DIR) + "/examples/hyper_v2/llama31_8b_train.yaml";
  const auto document = Json::parse(run_nd("-y " + file + " -d 64 -A A3 -t 1 --json -").out);
  REQUIRE(document["baselines"].size() == 2);
  const auto& stated = document["baselines"][0];
  const auto& plain = document["baselines"][1];
  CHECK(stated["kind"] == "stated");
  CHECK(plain["kind"] == "data_parallel");
  const double step = document["candidates"][0]["step_time_s"];
  for (const auto* one : {&stated, &plain}) {
    REQUIRE((*one).contains("candidate"));
    CHECK((*one)["gap"].get<double>() == Approx((*one)["candidate"]["step_time_s"].get<double>() / step - 1));
    CHECK((*one)["gap"].get<double>() >= 0);
  }
  // The file states its strategy, so that --explain file prices the same.
  const auto explained = run_nd("-y " + file + " -d 64 -A A3 --explain file");
  CHECK(explained.status == (stated["candidate"]["fits"] == "no" ? 1 : 0));
  CHECK(plain["candidate"]["dp"] == 64);
  const auto table = run_nd("-y " + file + " -d 64 -A A3 -t 1").out;
  for (const char* part : {"for comparison", "as the input states it", "data parallel only"}) CHECK_THAT(table, Contains(part));
  // A preset states no strategy.
  CHECK(Json::parse(run_nd("-y llama-3.1-8b -d 64 -A A3 -t 1 --json -").out)["baselines"].size() == 1);
}

TEST_CASE("A baseline that does not fit says what it lacks") {
  const auto outcome = run_nd("-y llama-3.1-70b -d 64 -A A3 -t 1 --set zero=1");
  CHECK_THAT(outcome.out, Contains("data parallel only"));
  const auto document = Json::parse(run_nd("-y llama-3.1-405b -d 512 -A A3 -t 1 --set zero=1 --set mbs=1 --json -").out);
  const auto& plain = document["baselines"].back();
  if (plain["lacks_gib"] > 0) CHECK(plain["candidate"]["fits"] == "no");
}

}  // namespace nd::testing
