// SPDX-License-Identifier: Apache-2.0
// Defects of the predecessor that no other test of this folder shows: what the figure should depend on, and on what not.
#include <catch2/catch.hpp>

#include "unit/memory/scenarios.hpp"

namespace nd::test {

namespace {

double ledger_bytes(const Scenario& scenario, const ParallelConfig& config, std::string_view op, std::string_view tensor) {
  double sum = 0;
  for (const MemoryLine& line : memory_ledger(scenario, config, 0))
    if (line.op == op && line.tensor == tensor) sum += line.bytes.value;
  return sum;
}

}  // namespace

TEST_CASE("What the backward of a layer needs is there once, however many layers a stage has") {
  const auto working_set = [](std::int64_t layers) {
    Scenario scenario = bare_scenario(decoder({.layers = layers, .vocab = 256}), 1024);
    scenario.profile.memory.layer_working_set_ffn = 6;
    scenario.profile.memory.layer_working_set_hidden = 4;
    return estimate_memory(scenario, {.tp = 2, .pp = 2, .micro_batch_num = 4}).stages[0].working_set.value;
  };
  CHECK(working_set(4) > 0);
  CHECK(working_set(32) == working_set(4));
}

TEST_CASE("Gathered tokens of a MoE layer are those of its micro-batch and shrink with sequence parallelism") {
  Scenario scenario = bare_scenario(mixture({.layers = 2, .vocab = 256}, {}), 4096);
  scenario.profile.memory.dispatcher = Dispatcher::all_gather;
  // Two layers, 2h bytes a token of each of the 4 ranks.
  const double whole = ledger_bytes(scenario, {.dp = 4, .ep = 4}, "dispatch", "gathered hidden states");
  CHECK(whole == Approx(2 * 4096.0 * 2 * 1024 * 4).epsilon(1e-12));
  const ParallelConfig shared{.dp = 4, .tp = 2, .ep = 4, .sequence_parallel = true};
  CHECK(ledger_bytes(scenario, shared, "dispatch", "gathered hidden states") == Approx(whole / 2).epsilon(1e-12));
  CHECK(ledger_bytes(scenario, {.dp = 4, .ep = 4, .micro_batch_num = 8}, "dispatch", "gathered hidden states") == Approx(whole).epsilon(1e-12));
}

TEST_CASE("The attention output is divided by tp and by cp, not by the larger of the two") {
  const Scenario scenario = bare_scenario(decoder({.layers = 1, .vocab = 256}), 4096);
  const double one = ledger_bytes(scenario, {}, "attention", "output");
  CHECK(one == Approx(4096.0 * 2 * 1024).epsilon(1e-12));
  CHECK(ledger_bytes(scenario, {.tp = 2, .cp = 4}, "attention", "output") == Approx(one / 8).epsilon(1e-12));
}

TEST_CASE("Shared experts are split like a dense network, whatever the number of routed ones") {
  const auto shared = [](std::int64_t experts) {
    const Scenario scenario =
        bare_scenario(mixture({.layers = 1, .vocab = 256}, {.count = experts, .shared = 1, .shared_width = 2048}), 64);
    return ledger_bytes(scenario, {.tp = 4}, "shared in", "weight") + ledger_bytes(scenario, {.tp = 4}, "shared out", "weight");
  };
  CHECK(shared(8) == Approx(2 * 3.0 * 1024 * 2048 / 4).epsilon(1e-12));
  CHECK(shared(6) == shared(8));
  CHECK(shared(128) == shared(8));
}

TEST_CASE("A stage says at which instant it peaks, and no byte is rounded on the way") {
  const Scenario scenario = bare_scenario(decoder({.layers = 3, .vocab = 1001}), 333);
  const auto memory = estimate_memory(scenario, {.pp = 3, .micro_batch_num = 3});
  for (int stage = 0; stage < 3; ++stage) {
    double sum = 0;
    for (const MemoryLine& line : memory_ledger(scenario, {.pp = 3, .micro_batch_num = 3}, stage)) sum += line.bytes.value;
    CHECK(sum == Approx(memory.stages[static_cast<std::size_t>(stage)].allocated.value).epsilon(1e-14));
  }
  CHECK(memory.stages[2].instant == Instant::loss);
  CHECK(memory.stages[0].instant == Instant::backward);
}

}  // namespace nd::test
