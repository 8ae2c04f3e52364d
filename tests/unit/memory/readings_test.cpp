// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "memory/fit_test.hpp"
#include "unit/memory/scenarios.hpp"

namespace nd::test {

TEST_CASE("The allocator's reserved bytes hold neither context nor communicators, the device's reading does") {
  Scenario scenario = bare_scenario(decoder({.layers = 4}), 8192);
  DeviceMemory& device = scenario.cluster.device.memory;
  device.runtime_context = {1 * kGiB};
  device.usable_is_allocatable = false;
  device.per_communicator = {2 * kGiB};
  const auto stage = estimate_memory(scenario, {.dp = 2}).peak();  // one communicator: that of the job
  const double blocks = stage.static_bytes().value + 1.22 * stage.dynamic_bytes().value;
  CHECK(stage.cached.value == Approx(blocks + 2.5 * kGiB).epsilon(1e-12));    // the profile's constant
  CHECK(stage.reserved.value == Approx(blocks + 3.0 * kGiB).epsilon(1e-12));  // context 1 + communicator 2 exceed it
}

TEST_CASE("Temporaries of the optimizer step do not fragment: they find the room that activations left") {
  // Few tokens, so that the step peaks; foreach AdamW copies all gradients (2 bytes a parameter here).
  const Decoder d{.layers = 4};
  Scenario scenario = bare_scenario(decoder(d), 16);
  scenario.profile.memory.gradient_bytes = 2;
  scenario.profile.memory.optimizer_temporary = OptimizerTemporary::all_gradients;
  const double elements = 4 * layer_elements(d) + 2 * 32000.0 * 1024 + 1024;
  const auto stage = estimate_memory(scenario, {}).peak();
  CHECK(stage.instant == Instant::optimizer_step);
  CHECK(stage.temporary.value == Approx(2 * elements).epsilon(1e-12));
  // 16 bytes of states and the 2 of the copy once, not 1.12 times, and the constant of one device.
  CHECK(stage.reserved.value == Approx(18 * elements + 0.65 * kGiB).epsilon(1e-12));
}

TEST_CASE("What decides is the instant with most reserved bytes, not the one with most allocated ones") {
  const Decoder d{.layers = 4};
  Scenario scenario = bare_scenario(decoder(d), 512);
  scenario.profile.memory.optimizer_temporary = OptimizerTemporary::all_gradients;
  const double elements = 4 * layer_elements(d) + 2 * 32000.0 * 1024 + 1024;
  scenario.profile.memory.reserve_factor_single = 5;  // a very fragmented loss
  const auto stage = estimate_memory(scenario, {}).peak();
  CHECK(stage.instant == Instant::optimizer_step);
  scenario.profile.memory.optimizer_temporary = OptimizerTemporary::none;
  const auto without = estimate_memory(scenario, {}).peak();
  CHECK(without.instant == Instant::loss);
  CHECK(without.allocated < stage.allocated);
  CHECK(without.reserved == stage.reserved);
  CHECK(without.reserved.value == Approx(18 * elements + 5 * without.dynamic_bytes().value + 0.65 * kGiB).epsilon(1e-12));
}

TEST_CASE("Products in 8 bits keep copies of the layers' matrices, per weight and not per token") {
  const Decoder d{.layers = 4};
  Scenario scenario = bare_scenario(decoder(d), 64);
  scenario.profile.memory.fp8_weight_bytes = 2;  // cast and transposed
  const double plain = estimate_memory(scenario, {}).peak().workspace.value;
  CHECK(plain == 0);  // 16-bit products: no copies
  scenario.run.gemm_dtype = Dtype::fp8;
  const double matrices = 4 * (layer_elements(d) - 2 * 1024);  // without norms and tables
  CHECK(estimate_memory(scenario, {}).peak().workspace.value == Approx(2 * matrices).epsilon(1e-12));
  CHECK(estimate_memory(scenario, {.tp = 2}).peak().workspace.value == Approx(matrices).epsilon(1e-12));
  scenario.run.seq_length = 4096;
  CHECK(estimate_memory(scenario, {}).peak().workspace.value == Approx(2 * matrices).epsilon(1e-12));
  scenario.run.frozen_base = true;
  CHECK(estimate_memory(scenario, {}).peak().workspace.value == 0);
}

}  // namespace nd::test
