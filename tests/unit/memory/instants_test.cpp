// SPDX-License-Identifier: Apache-2.0
// The moments at which a stage holds most, and what each holds.
#include <catch2/catch.hpp>

#include "memory/fit_test.hpp"
#include "unit/memory/scenarios.hpp"

namespace nd::test {
namespace {

double line_bytes(const std::vector<MemoryLine>& lines, std::string_view part, std::string_view tensor) {
  double bytes = 0;
  for (const MemoryLine& line : lines)
    if (line.part == part && line.tensor == tensor) bytes += line.bytes.value;
  return bytes;
}

}  // namespace

TEST_CASE("Loss: 6 bytes per logit, of the vocabulary shard, on the last stage only") {
  // Llama-3-8B at 8,192 tokens: 8,192 x 128,256 x 6 B = 5.87 GiB (bf16 logits, one fp32 copy turned into the gradient).
  const Decoder llama{.hidden = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
  Scenario scenario = bare_scenario(decoder(llama), 8192);
  const auto two = estimate_memory(scenario, {.pp = 2, .micro_batch_num = 2});
  CHECK(two.stages[0].logits.value == 0);
  CHECK(to_gib(two.stages[1].logits) == Approx(5.871).margin(0.001));
  CHECK(two.stages[1].instant == Instant::loss);
  CHECK(estimate_memory(scenario, {.tp = 4}).peak().logits.value == Approx(6 * 8192.0 * 128256 / 4).epsilon(1e-12));
  scenario.profile.memory.logit_bytes_tp = 19;  // DTensor loss parallel
  CHECK(estimate_memory(scenario, {.tp = 4}).peak().logits.value == Approx(19 * 8192.0 * 128256 / 4).epsilon(1e-12));
}

TEST_CASE("Each MTP block adds a set of logits") {
  ResolvedModel model = decoder({});
  model.mtp_depth = 2;
  const Scenario scenario = bare_scenario(model, 4096);
  CHECK(estimate_memory(scenario, {}).peak().logits.value == Approx(3 * 6 * 4096.0 * 32000).epsilon(1e-12));
}

TEST_CASE("Backward: one layer's working set; recompute brings back what it dropped for one layer") {
  const Decoder d{.layers = 9, .gated = true};
  Scenario scenario = bare_scenario(decoder(d), 2048);
  scenario.profile.memory.layer_working_set_ffn = 6;
  scenario.profile.memory.layer_working_set_hidden = 4;
  const double working = 2048 * (6.0 * 4096 + 4 * 1024);
  const auto off = estimate_memory(scenario, {.pp = 3}).stages[1];
  CHECK(off.instant == Instant::backward);
  CHECK(off.working_set.value == Approx(working).epsilon(1e-12));
  const double one_layer = off.activations.value / 3;
  const auto full = estimate_memory(scenario, {.pp = 3, .recompute = Recompute::full}).stages[1];
  CHECK(full.working_set.value == Approx(working + one_layer).epsilon(1e-12));

  SECTION("selective: the dropped tensors of one layer, which the ancestor forgot") {
    scenario.profile.memory.flash_attention = false;
    const double square = 2.0 * 16 * 2048 * 2048;
    const auto selective = estimate_memory(scenario, {.pp = 3, .recompute = Recompute::selective}).stages[1];
    const double mask = 2048.0 * 2048;
    CHECK(selective.working_set.value == Approx(working + square + mask).epsilon(1e-12));
  }
  SECTION("frameworks that hold several layers' temporaries") {
    scenario.profile.memory.working_set_layers = 1.5;
    CHECK(estimate_memory(scenario, {.pp = 3, .recompute = Recompute::full}).stages[1].working_set.value ==
          Approx(1.5 * (working + one_layer)).epsilon(1e-12));
  }
}

TEST_CASE("The working set is that of the layer that needs most, not of the last one") {
  // First layer dense and wide, the others MoE and narrow.
  ResolvedModel model = mixture({.hidden = 512, .layers = 4, .heads = 8, .kv_heads = 8, .ffn = 32768, .vocab = 256},
                                {.count = 4, .per_token = 1, .width = 128, .dense_layers = 1});
  Scenario scenario = bare_scenario(model, 1024);
  scenario.profile.memory.layer_working_set_ffn = 6;
  CHECK(estimate_memory(scenario, {}).peak().working_set.value == Approx(1024 * 6.0 * 32768).epsilon(1e-12));
}

TEST_CASE("FSDP: two gathered layers while the step runs, whatever the number of layers; reduction of one") {
  for (const std::int64_t layers : {8, 32}) {
    const Decoder d{.layers = layers};
    Scenario scenario = bare_scenario(decoder(d), 64);
    scenario.profile.memory.layer_working_set_ffn = 1000;  // the backward decides
    const ParallelConfig config{.dp = 8, .op = 8, .zero = ZeroLevel::parameters};
    const auto lines = memory_ledger(scenario, config, 0);
    CHECK(estimate_memory(scenario, config).peak().instant == Instant::end_of_backward);
    CHECK(line_bytes(lines, "working_set", "gradient reduction") == Approx(4 * layer_elements(d)).epsilon(1e-12));
  }
}

TEST_CASE("FSDP1: root unit gathered all through, two layers at the loss") {
  const Decoder d{.layers = 8};
  Scenario scenario = bare_scenario(decoder(d), 4096);
  scenario.profile.memory.fsdp_root_gathered = true;
  const ParallelConfig config{.dp = 8, .op = 8, .zero = ZeroLevel::parameters};
  const auto stage = estimate_memory(scenario, config).peak();
  CHECK(stage.instant == Instant::loss);
  const double table = 32000.0 * 1024;
  CHECK(stage.working_set.value == Approx(2 * 2 * layer_elements(d) + 2 * (2 * table + 1024)).epsilon(1e-12));
}

TEST_CASE("FSDP2: the head is a unit of its own, gathered weight and gradient") {
  const Decoder d{.layers = 8};
  Scenario scenario = bare_scenario(decoder(d), 4096);
  const ParallelConfig config{.dp = 8, .op = 8, .zero = ZeroLevel::parameters};
  const double head = 32000.0 * 1024 + 1024;
  const double expected = 2 * 2 * layer_elements(d) + 8 * head;  // 2 gathered + 2 gradient + 4 reduction
  CHECK(estimate_memory(scenario, config).peak().working_set.value == Approx(expected).epsilon(1e-12));
  scenario.profile.memory.fsdp_table_bytes = 8;  // the same, stated
  CHECK(estimate_memory(scenario, config).peak().working_set.value == Approx(expected).epsilon(1e-12));
}

TEST_CASE("One device gathers nothing") {
  const Scenario scenario = bare_scenario(decoder({}), 4096);
  CHECK(estimate_memory(scenario, {.zero = ZeroLevel::parameters}).peak().working_set.value == 0);
}

TEST_CASE("No reduction between micro-batches: whole 16-bit gradients, 2 P, from the second micro-batch on") {
  const Decoder d{.layers = 8};
  Scenario scenario = bare_scenario(decoder(d), 4096);
  ParallelConfig config{.dp = 8, .op = 8, .micro_batch_num = 1, .zero = ZeroLevel::parameters};
  const double once = estimate_memory(scenario, config).peak().allocated.value;
  scenario.profile.memory.accumulates_whole_gradients = true;
  CHECK(estimate_memory(scenario, config).peak().allocated.value == once);
  config.micro_batch_num = 4;
  const double elements = 8 * layer_elements(d) + 2 * 32000.0 * 1024 + 1024;
  CHECK(estimate_memory(scenario, config).peak().allocated.value == Approx(once + (2 - 4.0 / 8) * elements).epsilon(1e-12));  // instead of the shards, 4 P / 8
}

TEST_CASE("Gradients made anew in every step are not there at the loss, unless micro-batches accumulate") {
  const Decoder d{.layers = 4};
  Scenario scenario = bare_scenario(decoder(d), 8192);
  const double elements = 4 * layer_elements(d) + 2 * 32000.0 * 1024 + 1024;
  const double kept = estimate_memory(scenario, {}).peak().allocated.value;
  scenario.profile.memory.gradients_freed_between_steps = true;
  const auto fresh = estimate_memory(scenario, {}).peak();
  CHECK(fresh.instant == Instant::loss);
  CHECK(fresh.allocated.value == Approx(kept - 4 * elements).epsilon(1e-12));
  CHECK(estimate_memory(scenario, {.micro_batch_num = 2}).peak().allocated.value == Approx(kept).epsilon(1e-12));
  // A short batch: all gradients and one layer at the end of the backward.
  const auto small = estimate_memory(bare_scenario(decoder(d), 8), {});
  scenario.run.seq_length = 8;
  CHECK(estimate_memory(scenario, {}).peak().instant == Instant::end_of_backward);
  CHECK(estimate_memory(scenario, {}).peak().static_bytes() == small.peak().static_bytes());
}

TEST_CASE("Working sets measured under full recompute contain the recomputed layer") {
  Scenario scenario = bare_scenario(decoder({.layers = 9}), 2048);
  scenario.profile.memory.layer_working_set_ffn = 16;
  scenario.profile.memory.layer_working_set_hidden = 6;
  scenario.profile.memory.working_set_covers_recompute = true;
  CHECK(estimate_memory(scenario, {.pp = 3, .recompute = Recompute::full}).stages[1].working_set.value ==
        Approx(2048 * (16.0 * 4096 + 6 * 1024)).epsilon(1e-12));
}

TEST_CASE("A frozen base under FSDP1 keeps boundary gradients of all layers to the end of the backward") {
  const Decoder d{.layers = 8};
  Scenario scenario = bare_scenario(decoder(d), 4096);
  scenario.run.frozen_base = true;
  scenario.profile.memory.boundary_gradients_kept = true;
  scenario.profile.memory.logit_bytes = 0;
  const ParallelConfig config{.dp = 8, .op = 8, .zero = ZeroLevel::parameters, .recompute = Recompute::full};
  CHECK(estimate_memory(scenario, config).peak().instant == Instant::end_of_backward);
  CHECK(line_bytes(memory_ledger(scenario, config, 0), "working_set", "boundary gradients") == 2.0 * 1024 * 6 * 4096);
  // The layers' kept inputs are held with them: slopes of published adapter runs are 2 h (L + L - 2) and one layer.
  CHECK(line_bytes(memory_ledger(scenario, config, 0), "activations", "recompute input") == 2.0 * 1024 * 8 * 4096);
  // One device wraps nothing: no hooks.
  CHECK(estimate_memory(scenario, {.recompute = Recompute::full}).peak().instant != Instant::end_of_backward);
}

TEST_CASE("Whole gradients that wait for the last micro-batch stand instead of their shards") {
  const Decoder d{.layers = 8};
  Scenario scenario = bare_scenario(decoder(d), 4096);
  scenario.profile.memory.accumulates_whole_gradients = true;
  const double elements = 8 * layer_elements(d) + 2 * 32000.0 * 1024 + 1024;
  const auto stage =
      estimate_memory(scenario, {.dp = 2, .op = 2, .micro_batch_num = 4, .zero = ZeroLevel::parameters, .recompute = Recompute::full}).peak();
  CHECK(stage.gradients.value == 0);
  const auto lines = memory_ledger(
      scenario, {.dp = 2, .op = 2, .micro_batch_num = 4, .zero = ZeroLevel::parameters, .recompute = Recompute::full}, 0);
  CHECK(line_bytes(lines, "working_set", "whole, between micro-batches") == Approx(2 * elements).epsilon(1e-12));
}

TEST_CASE("Workspaces follow what the device's product library asks for") {
  Scenario scenario = bare_scenario(mixture({.layers = 2}, {}), 16);
  scenario.profile.memory.base_workspace_gib = 0.12;
  scenario.profile.memory.grouped_gemm_workspace_gib = 0.125;
  CHECK(estimate_memory(scenario, {}).peak().workspace.value == Approx(0.245 * kGiB).epsilon(1e-12));
  // 4 MiB instead of 32: one buffer less 28 MiB in the base, and four streams of 4 MiB.
  scenario.cluster.device.memory.product_workspace = {4 * 1024 * 1024.0};
  CHECK(estimate_memory(scenario, {}).peak().workspace.value == Approx((0.12 + 0.125 / 8) * kGiB - 28 * 1024 * 1024.0).epsilon(1e-12));
}

TEST_CASE("Optimizer step: temporary of the largest tensor's shard") {
  // The table, 32,000 x 1,024, is the largest tensor; its states are shared by 4 ranks, its rows by 2.
  Scenario scenario = bare_scenario(decoder({.layers = 2}), 16);
  scenario.profile.memory.optimizer_temporary = OptimizerTemporary::largest_tensor;
  const auto stage = estimate_memory(scenario, {.dp = 4, .tp = 2, .op = 4, .zero = ZeroLevel::optimizer}).peak();
  CHECK(stage.instant == Instant::optimizer_step);
  CHECK(stage.temporary.value == Approx(4 * 32000.0 * 1024 / 2 / 4).epsilon(1e-12));
}

TEST_CASE("A counter read after the first step saw activations before the moments were made") {
  const Decoder d{.layers = 4};
  Scenario scenario = bare_scenario(decoder(d), 8192);
  const double elements = 4 * layer_elements(d) + 2 * 32000.0 * 1024 + 1024;
  const auto steady = estimate_memory(scenario, {});
  const auto first = estimate_memory(scenario, {}, ReadingTime::first_iteration);
  CHECK(first.peak().allocated.value == Approx(steady.peak().allocated.value - 8 * elements).epsilon(1e-12));
  CHECK(first.peak().optimizer_states.value == Approx(4 * elements).epsilon(1e-12));
  // What decides whether the run survives is the steady state in both.
  CHECK(first.peak().reserved.value == Approx(steady.peak().reserved.value).epsilon(1e-12));
  CHECK(first.fit == steady.fit);
}

TEST_CASE("Cached weight gradients: one 16-bit buffer per distinct shape, of the experts one, and the head's at the loss") {
  const Decoder d{.hidden = 512, .layers = 4, .heads = 8, .kv_heads = 8, .ffn = 2048, .vocab = 1000};
  Scenario scenario = bare_scenario(mixture(d, {.count = 8, .per_token = 2, .width = 256, .dense_layers = 2}), 4096);
  scenario.profile.memory.cached_weight_gradients = true;
  const double attention = 4.0 * 512 * 512, ffn = 3.0 * 512 * 2048, expert = 3.0 * 512 * 256, router = 512.0 * 8;
  const auto stage = estimate_memory(scenario, {}).peak();
  CHECK(stage.workspace.value == Approx(2 * (attention + ffn + expert + router)).epsilon(1e-12));
  CHECK(stage.logits.value == Approx(6 * 4096.0 * 1000 + 2 * (1000 * 512.0 + 512)).epsilon(1e-12));
}

TEST_CASE("Workspaces and buckets are static") {
  Scenario scenario = bare_scenario(mixture({.layers = 2}, {}), 64);
  scenario.profile.memory.base_workspace_gib = 0.12;
  scenario.profile.memory.grouped_gemm_workspace_gib = 0.125;
  scenario.profile.memory.bucket_bytes = 2e9;
  const auto stage = estimate_memory(scenario, {}).peak();
  CHECK(stage.workspace.value == Approx(0.245 * kGiB).epsilon(1e-12));
  const double elements = stage.parameters.value / 2;
  CHECK(stage.buffers.value == Approx(std::min(2e9, 4 * elements)).epsilon(1e-12));
}

TEST_CASE("Reserved: static + factor x dynamic + constant, one device and several") {
  Scenario scenario = bare_scenario(decoder({.layers = 4}), 8192);
  const auto one = estimate_memory(scenario, {}).peak();
  CHECK(one.reserved.value == Approx(one.static_bytes().value + 1.12 * one.dynamic_bytes().value + 0.65 * kGiB).epsilon(1e-12));
  const auto two = estimate_memory(scenario, {.dp = 2}).peak();
  CHECK(two.reserved.value == Approx(two.static_bytes().value + 1.22 * two.dynamic_bytes().value + 2.5 * kGiB).epsilon(1e-12));

  SECTION("context and communicators count where they exceed the profile's constant") {
    DeviceMemory& device = scenario.cluster.device.memory;
    device.per_communicator = {1.5 * kGiB};
    // dp 2 x tp 2: the job, tp, dp -> 3 communicators, 4.5 GiB.
    CHECK(memory::communicators({.dp = 2, .tp = 2}) == 3);
    CHECK(memory::reserve_rule(scenario, {.dp = 2, .tp = 2}).constant == Approx(4.5 * kGiB));
    device.runtime_context = {1 * kGiB};
    CHECK(memory::reserve_rule(scenario, {.dp = 2, .tp = 2}).constant == Approx(4.5 * kGiB));  // usable is what is left to allocate
    device.usable_is_allocatable = false;
    CHECK(memory::reserve_rule(scenario, {.dp = 2, .tp = 2}).constant == Approx(5.5 * kGiB));
  }
}

TEST_CASE("Budget: what the run states, else what trainers set, never more than usable") {
  Scenario scenario = bare_scenario(decoder({}), 64);
  DeviceMemory& device = scenario.cluster.device.memory;
  device.usable = {61 * kGiB};
  CHECK(memory::memory_budget(scenario) == Bytes{61 * kGiB});
  device.usual_budget = Bytes{58 * kGiB};
  CHECK(memory::memory_budget(scenario) == Bytes{61 * kGiB});
  scenario.profile.can.style = DataParallelStyle::mindspore;
  CHECK(memory::memory_budget(scenario) == Bytes{58 * kGiB});
  scenario.run.device_memory = {60 * kGiB};
  CHECK(memory::memory_budget(scenario) == Bytes{60 * kGiB});
  scenario.run.device_memory = {70 * kGiB};
  CHECK(memory::memory_budget(scenario) == Bytes{61 * kGiB});
  device.usable = {};
  device.nominal = {64 * kGiB};
  CHECK(memory::memory_budget(scenario) == Bytes{64 * kGiB});
}

TEST_CASE("Fit: no above the budget, tight within the error of the model") {
  StageMemory stage;
  stage.allocated = {40 * kGiB};
  stage.reserved = {50 * kGiB};
  CHECK(memory::judge_fit(stage, {49 * kGiB}, 0.05) == Fit::no);
  CHECK(memory::judge_fit(stage, {50 * kGiB}, 0.05) == Fit::tight);
  CHECK(memory::judge_fit(stage, {51.9 * kGiB}, 0.05) == Fit::tight);
  CHECK(memory::judge_fit(stage, {52.1 * kGiB}, 0.05) == Fit::yes);
}

TEST_CASE("GPipe holds the logits of every micro-batch on the last stage") {
  const Scenario scenario = bare_scenario(decoder({.layers = 4}), 512);
  const auto memory = estimate_memory(scenario, {.pp = 4, .micro_batch_num = 8, .schedule = Schedule::gpipe});
  CHECK(memory.stages[3].logits.value == Approx(8 * 6 * 512.0 * 32000).epsilon(1e-12));
}

}  // namespace nd::test
