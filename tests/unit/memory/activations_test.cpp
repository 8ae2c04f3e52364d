// SPDX-License-Identifier: Apache-2.0
// Activations kept per layer, stage and schedule. Source of the published sums: Korthikanti et al. 2022, arXiv 2205.05198,
// sections 4 and 5: 16-bit, GELU, f = 4h, dropout.
#include <catch2/catch.hpp>

#include "layout/schedules/pass_lists.hpp"
#include "layout/schedules/table.hpp"
#include "memory/in_flight.hpp"
#include "unit/memory/scenarios.hpp"

namespace nd::test {
namespace {

// GPT-3 175B widths.
constexpr Decoder kGpt3{.hidden = 12288, .layers = 3, .heads = 96, .kv_heads = 96, .ffn = 4 * 12288, .vocab = 51200, .gated = false, .norm_bias = true};
constexpr double kTokens = 2048, kHidden = 12288, kHeads = 96;

Scenario gpt3(bool flash) {
  Scenario scenario = bare_scenario(decoder(kGpt3), 2048);
  scenario.run.hidden_dropout = scenario.run.attention_dropout = 0.1;
  scenario.profile.memory.flash_attention = flash;
  scenario.profile.memory.softmax_statistics_bytes = 0;
  return scenario;
}

/// Bytes one layer keeps for one micro-batch: the middle of three stages of one layer, one micro-batch.
double layer_bytes(const Scenario& scenario, ParallelConfig config) {
  config.pp = 3;
  return estimate_memory(scenario, config).stages.at(1).activations.value;
}

double chunks_kept(const Scenario& scenario, const ParallelConfig& config, int stage) {
  return estimate_memory(scenario, config).stages.at(static_cast<std::size_t>(stage)).in_flight * config.vpp;
}

}  // namespace

TEST_CASE("Korthikanti: s b h (34 + 5 a s / h) without parallelism, 2,736 MiB for GPT-3") {
  const double expected = kTokens * kHidden * (34 + 5 * kHeads * kTokens / kHidden);
  CHECK(layer_bytes(gpt3(false), {}) == Approx(expected).epsilon(1e-12));
  CHECK(expected / kMiB == Approx(2736));
}

TEST_CASE("Korthikanti: tensor parallelism divides 24 of 34 and the attention square") {
  const double square = 5 * kHeads * kTokens / kHidden;
  CHECK(layer_bytes(gpt3(false), {.tp = 8}) == Approx(kTokens * kHidden * (10 + 24 / 8.0 + square / 8)).epsilon(1e-12));
  CHECK(layer_bytes(gpt3(false), {.tp = 8, .sequence_parallel = true}) == Approx(kTokens * kHidden * (34 + square) / 8).epsilon(1e-12));
  // Without the square and without sequence parallelism: 13 s b h = 312 MiB.
  CHECK(layer_bytes(gpt3(true), {.tp = 8}) / kMiB == Approx(312).epsilon(1e-12));
}

TEST_CASE("Korthikanti: selective recompute drops the square, full keeps the layer input") {
  CHECK(layer_bytes(gpt3(false), {.tp = 8, .sequence_parallel = true, .recompute = Recompute::selective}) ==
        Approx(34 * kTokens * kHidden / 8).epsilon(1e-12));
  CHECK(layer_bytes(gpt3(false), {.recompute = Recompute::selective}) / kMiB == Approx(816).epsilon(1e-12));
  CHECK(layer_bytes(gpt3(false), {.recompute = Recompute::full}) == Approx(2 * kTokens * kHidden).epsilon(1e-12));
  CHECK(layer_bytes(gpt3(false), {.tp = 8, .sequence_parallel = true, .recompute = Recompute::full}) ==
        Approx(2 * kTokens * kHidden / 8).epsilon(1e-12));
}

TEST_CASE("Trainers that upcast the residual stream keep 4 bytes per element of a recomputed layer's input") {
  Scenario scenario = gpt3(true);
  scenario.profile.memory.recompute_input_bytes = 4;
  CHECK(layer_bytes(scenario, {.recompute = Recompute::full}) == Approx(4 * kTokens * kHidden).epsilon(1e-12));
}

TEST_CASE("Korthikanti: the first stage of a pipeline keeps L layers, interleaved (1 + (p-1)/(p v)) times as much") {
  Decoder d = kGpt3;
  d.layers = 16;
  Scenario scenario = bare_scenario(decoder(d), 2048);
  scenario.profile.memory.softmax_statistics_bytes = 0;
  const double layer = 32 * kTokens * kHidden;  // flash, no dropout
  const double ids = 8 * kTokens;
  const auto plain = estimate_memory(scenario, {.pp = 4, .micro_batch_num = 16}).stages.front();
  CHECK(plain.activations.value == Approx(16 * layer + 4 * ids).epsilon(1e-12));
  const auto interleaved =
      estimate_memory(scenario, {.pp = 4, .vpp = 4, .micro_batch_num = 16, .schedule = Schedule::interleaved}).stages.front();
  CHECK(interleaved.activations.value == Approx(16 * layer * (1 + 3 / 16.0)).epsilon(1e-4));  // + the ids of at most 8 micro-batches
  CHECK(interleaved.in_flight == Approx((2 * 3 + 3 * 4 + 1) / 4.0));
}

TEST_CASE("Micro-batches in flight follow the schedule") {
  const Scenario scenario = bare_scenario(decoder({.layers = 16}), 128);
  for (int stage = 0; stage < 4; ++stage) {
    CAPTURE(stage);
    CHECK(chunks_kept(scenario, {.pp = 4, .micro_batch_num = 8}, stage) == 4 - stage);
    CHECK(chunks_kept(scenario, {.pp = 4, .micro_batch_num = 2}, stage) == std::min(2, 4 - stage));  // not min(p, m) - i
    CHECK(chunks_kept(scenario, {.pp = 4, .micro_batch_num = 8, .schedule = Schedule::gpipe}, stage) == 8);
    CHECK(chunks_kept(scenario, {.pp = 4, .vpp = 2, .micro_batch_num = 8, .schedule = Schedule::interleaved}, stage) == 2 * (3 - stage) + 4 + 1);
  }
  CHECK(chunks_kept(scenario, {.pp = 4, .vpp = 2, .micro_batch_num = 4, .schedule = Schedule::interleaved}, 0) == 8);
}

TEST_CASE("Megatron-core up to 0.8 runs every forward first when m = pp, with as many sets of logits") {
  Scenario scenario = bare_scenario(decoder({.layers = 16}), 128);
  scenario.profile.memory.interleaved_forwards_first = true;
  const ParallelConfig config{.pp = 4, .vpp = 2, .micro_batch_num = 4, .schedule = Schedule::interleaved};
  CHECK(chunks_kept(scenario, config, 3) == 8);
  const auto memory = estimate_memory(scenario, config);
  CHECK(memory.stages[3].logits.value == Approx(4 * 6 * 128.0 * 32000).epsilon(1e-12));
  ParallelConfig more = config;
  more.micro_batch_num = 8;
  CHECK(chunks_kept(scenario, more, 3) == 5);
}

TEST_CASE("Chunks of an interleaved stage: the forward order fills the first ones first") {
  // p = 2, v = 2, m = 4, first stage: 2 (2 - 1) + 2 + 1 = 5 chunks: forwards 0 0 1 1 0; one backward (chunk 1) and one forward
  // (chunk 0) later there are 4 of chunk 0 and 1 of chunk 1.
  const memory::KeptFront front({.pp = 2, .vpp = 2, .micro_batch_num = 4, .schedule = Schedule::interleaved}, 0, 2);
  const auto heaviest = [&front](double first, double second) {
    const auto counts = front.heaviest(std::vector<double>{first, second});
    return std::vector<double>(counts.begin(), counts.end());
  };
  CHECK(heaviest(1, 1) == std::vector<double>{3, 2});
  CHECK(heaviest(3, 1) == std::vector<double>{4, 1});
  // Everything at once when the batch is small.
  const memory::KeptFront small({.pp = 2, .vpp = 2, .micro_batch_num = 2, .schedule = Schedule::interleaved}, 0, 2);
  CHECK(small.moments() == 1);
  CHECK(small.moment(0)[0] == 2);
  CHECK(small.moment(0)[1] == 2);
}

TEST_CASE("Kept chunks equal the walk over the whole pass list, for every schedule and weight of the chunks") {
  for (const Schedule schedule : all_schedules()) {
    for (const int p : {1, 2, 3, 4, 6, 8}) {
      for (const int v : {1, 2, 3}) {
        for (const int m : {1, 2, 4, 7, 8, 11, 16, 24, 37, 64}) {
          // Every other batch in groups of p + 1.
          const int group = schedule == Schedule::interleaved && m % 2 == 1 && m > p ? p + 1 : 0;
          const ParallelConfig config{.pp = p, .vpp = v, .micro_batch_num = m, .schedule = schedule, .micro_batch_group = group};
          const auto& row = layout::schedule_row(schedule);
          const ScheduleShape shape = schedule_shape(config);
          if (layout::why_invalid(row, shape)) continue;
          const auto chunks = static_cast<std::size_t>(row.local_chunks(shape));
          for (int stage = 0; stage < p; ++stage) {
            layout::PassList passes;
            row.passes(shape, stage, passes);
            const memory::KeptFront front(config, stage, chunks);
            for (const double ratio : {0.25, 1.0, 3.0}) {
              std::vector<layout::ChunkBytes> bytes;
              std::vector<double> plain;
              for (std::size_t c = 0; c < chunks; ++c) {
                const double b = 1 + ratio * static_cast<double>(c);
                bytes.push_back({b, b});
                plain.push_back(b);
              }
              std::vector<layout::ChunkHeld> held(chunks);
              const double expected = layout::largest_held(passes, shape.parts, bytes, held);
              const auto counts = front.heaviest(plain);
              double sum = 0;
              for (std::size_t c = 0; c < chunks; ++c) sum += counts[c] * plain[c];
              CAPTURE(row.name, p, v, m, stage, ratio);
              CHECK(sum == Approx(expected).epsilon(1e-12));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("DualPipe holds every layer twice, ZB-V table and head on the first stage") {
  const Decoder d{.layers = 8};
  const Scenario scenario = bare_scenario(decoder(d), 128);
  const double layer = layer_elements(d), table = 32000.0 * 1024;
  const auto both = estimate_memory(scenario, {.pp = 4, .micro_batch_num = 8, .schedule = Schedule::dualpipe});
  CHECK(both.stages[0].parameters.value == Approx(2 * (4 * layer + 2 * table + 1024)).epsilon(1e-12));
  CHECK(both.stages[1].parameters.value == Approx(2 * 4 * layer).epsilon(1e-12));
  const auto v_shape = estimate_memory(scenario, {.pp = 4, .vpp = 2, .micro_batch_num = 8, .schedule = Schedule::zb_v});
  CHECK(v_shape.stages[0].parameters.value == Approx(2 * (2 * layer + 2 * table + 1024)).epsilon(1e-12));
  CHECK(v_shape.stages[3].parameters.value == Approx(2 * 2 * layer).epsilon(1e-12));
}

TEST_CASE("With flash attention activations grow with the sequence, not with its square") {
  const Scenario shorter = bare_scenario(decoder({.layers = 3}), 4096);
  const Scenario longer = bare_scenario(decoder({.layers = 3}), 32768);
  CHECK(layer_bytes(longer, {}) == Approx(8 * layer_bytes(shorter, {})).epsilon(1e-12));
}

TEST_CASE("Context parallelism divides layers, recompute inputs, logits and MTP by cp") {
  ResolvedModel model = decoder({.layers = 3});
  model.mtp_depth = 1;
  const Scenario scenario = bare_scenario(model, 8192);
  for (const Recompute mode : {Recompute::off, Recompute::full}) {
    const auto whole = estimate_memory(scenario, {.recompute = mode}).peak();
    const auto split = estimate_memory(scenario, {.cp = 4, .recompute = mode, .cp_algorithm = CpAlgorithm::ulysses}).peak();
    CHECK(split.activations.value == Approx(whole.activations.value / 4).epsilon(1e-12));
    CHECK(split.logits.value == Approx(whole.logits.value / 4).epsilon(1e-12));
  }
}

TEST_CASE("Query activations have heads x head width, whatever the hidden size") {
  // h 1024, 16 heads of 256: Q 2ad, K and V 4gd, output 2ad.
  const Scenario scenario = bare_scenario(decoder({.layers = 3, .kv_heads = 4, .head_dim = 256}), 1024);
  double q = 0, out = 0;
  for (const MemoryLine& line : memory_ledger(scenario, {.pp = 3}, 1)) {
    if (line.part == "activations" && line.tensor == "q") q += line.bytes.value;
    if (line.part == "activations" && line.op == "attention" && line.tensor == "output") out += line.bytes.value;
  }
  CHECK(q == 2.0 * 1024 * 16 * 256);
  CHECK(out == 2.0 * 1024 * 16 * 256);
}

TEST_CASE("Recompute of some layers: the counts of the stage, the rest keeps everything") {
  Scenario scenario = bare_scenario(decoder({.layers = 12}), 1024);
  const double all = estimate_memory(scenario, {.pp = 3}).stages[1].activations.value / 4;
  const double input = 2.0 * 1024 * 1024;
  scenario.run.full_recompute_layers = {1, 3, 0};
  scenario.run.strategy.recompute = Recompute::full;
  const auto memory = estimate_memory(scenario, {.pp = 3, .recompute = Recompute::full});
  CHECK(memory.stages[1].activations.value == Approx(all + 3 * input).epsilon(1e-12));
}

TEST_CASE("MoE keeps dispatched inputs and k outputs per token, the router in fp32; imbalance raises them") {
  Scenario scenario = bare_scenario(mixture({.hidden = 512, .layers = 3, .heads = 8, .kv_heads = 8, .ffn = 1024, .vocab = 1000},
                                            {.count = 8, .per_token = 2, .width = 256}),
                                    256);
  const auto line = [&](std::string_view tensor) {
    double bytes = 0;
    for (const MemoryLine& l : memory_ledger(scenario, {.dp = 4, .pp = 3, .ep = 4}, 1))
      if (l.part == "activations" && l.tensor == tensor) bytes += l.bytes.value;
    return bytes;
  };
  CHECK(line("dispatched inputs") == 2.0 * 2 * 256 * 512);
  CHECK(line("expert outputs") == 2.0 * 2 * 256 * 512);
  CHECK(line("logits and probabilities") == 8.0 * 256 * 8);
  scenario.run.expert_imbalance = 1.5;
  CHECK(line("dispatched inputs") == 1.5 * 2 * 2 * 256 * 512);
}

TEST_CASE("Tensor parallelism lowers what a MoE layer holds") {
  const Scenario scenario = bare_scenario(deepseek(4, 0), 4096);
  const auto one = estimate_memory(scenario, {.dp = 8, .ep = 8}).peak();
  const auto two = estimate_memory(scenario, {.dp = 4, .tp = 2, .ep = 8, .sequence_parallel = true}).peak();
  CHECK(two.dynamic_bytes() < one.dynamic_bytes());
}

TEST_CASE("Optimizer sharding changes no activation") {
  const Scenario scenario = bare_scenario(decoder({}), 1024);
  CHECK(estimate_memory(scenario, {.dp = 4}).peak().activations ==
        estimate_memory(scenario, {.dp = 4, .op = 4, .zero = ZeroLevel::optimizer}).peak().activations);
}

}  // namespace nd::test
