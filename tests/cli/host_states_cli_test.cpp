// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "process.hpp"

namespace nd::testing {
namespace {

using Json = nlohmann::json;

const std::string kOneStrategy = " -y llama-3.1-8b -A A3 -f generic -b 64 --set tp=1 --set pp=1 --set cp=1 --set mbs=1 --set zero=1 --recompute full -t 1 --json -";

Json best(const std::string& options) {
  const auto outcome = run_nd(options + kOneStrategy);
  INFO(options << "\n" << outcome.err);
  REQUIRE(outcome.status == 0);
  return Json::parse(outcome.out)["candidates"][0];
}

}  // namespace

TEST_CASE("-swap_os: optimizer states leave the device and cross the host link in every step") {
  const Json plain = best("-d 32"), swapped = best("-d 32 -swap_os");
  // Main copy and two moments, 12 bytes of each of the 8,030,261,248 parameters, over 32 ranks.
  const double bytes = 12.0 * 8'030'261'248.0 / 32, gib = 1024.0 * 1024 * 1024;
  const auto states = [](const Json& candidate) { return candidate["memory_gib"]["stages"][0]["parts"]["optimizer_states"].get<double>(); };
  CHECK(states(plain) == Approx(bytes / gib).epsilon(1e-4));
  CHECK(states(swapped) == 0);
  // The host link of a die carries 6.92 GiB/s while all copy (data/devices/ascend-910c-die.yaml): in and out again.
  const auto optimizer = [](const Json& candidate) { return candidate["time_parts_s"]["OPTIMIZER"].get<double>(); };
  CHECK(optimizer(swapped) - optimizer(plain) == Approx(2 * bytes / (6.92 * gib)).epsilon(1e-3));
}

TEST_CASE("-swap_os: what fits only so is found") {
  CHECK(run_nd("-d 8" + kOneStrategy).status == 1);
  CHECK(best("-d 8 -swap_os")["rank"] == 1);
}

TEST_CASE("-swap_os: a trainer that cannot is named, with those that can") {
  const auto outcome = run_nd("-y llama-3.1-8b -A H100 -d 8 -f megatron-core -swap_os");
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Catch::Contains("error: -swap_os: megatron-core does not keep optimizer states in host memory (these do: generic,"));
}

}  // namespace nd::testing
