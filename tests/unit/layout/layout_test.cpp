// SPDX-License-Identifier: Apache-2.0
#include "layout/layout.hpp"

#include <catch2/catch.hpp>
#include <numeric>

namespace {

nd::ResolvedModel uniform_model(int layers) {
  nd::ResolvedModel model;
  model.hidden_size = 64;
  model.vocab_size = 1000;
  model.kinds.resize(1);
  model.layer_kind.assign(static_cast<std::size_t>(layers), 0);
  return model;
}

std::vector<std::int64_t> layers_of(const nd::layout::StageLayout& layout) {
  std::vector<std::int64_t> out;
  for (const auto& stage : layout.stages) {
    std::int64_t sum = 0;
    for (const auto& chunk : stage) sum += chunk.layers();
    out.push_back(sum);
  }
  return out;
}

}  // namespace

TEST_CASE("layers divide evenly when they can", "[layout]") {
  nd::ParallelConfig config{.pp = 4};
  const auto layout = nd::layout::make_layout(uniform_model(32), {}, config);
  CHECK(layers_of(layout) == std::vector<std::int64_t>{8, 8, 8, 8});
  CHECK(layout.stages.front().front().embedding);
  CHECK(layout.stages.back().back().head);
  CHECK_FALSE(layout.balanced);
}

TEST_CASE("a remainder goes to the middle stages first, the ends carry table and head", "[layout]") {
  nd::ParallelConfig config{.pp = 4};
  CHECK(layers_of(nd::layout::make_layout(uniform_model(34), {}, config)) == std::vector<std::int64_t>{8, 9, 9, 8});
  CHECK(layers_of(nd::layout::make_layout(uniform_model(35), {}, config)) == std::vector<std::int64_t>{9, 9, 9, 8});
  CHECK(nd::layout::make_layout(uniform_model(34), {}, config).balanced);
}

TEST_CASE("a trainer that cuts by the cost of blocks", "[layout]") {
  // Llama 1B of nanotron: a layer costs 4 * 2048^2 + 3 * 2048 * 4096 = 41.9 M, the head 2048 * 50257 = 102.9 M, 138.7 M a stage.
  auto model = uniform_model(24);
  model.hidden_size = 2048;
  model.vocab_size = 50257;
  model.kinds[0].ffn.width = 4096;
  nd::ResolvedRun run;
  run.layer_split = nd::LayerSplit::block_cost;
  const auto layout = nd::layout::make_layout(model, run, nd::ParallelConfig{.pp = 8});
  CHECK(layers_of(layout) == std::vector<std::int64_t>{4, 3, 3, 4, 3, 3, 4, 0});
  CHECK_FALSE(layout.balanced);
  // No head to speak of: halves. What the run states goes first; several chunks are split evenly.
  model.vocab_size = 0;
  model.layer_kind.resize(4);
  CHECK(layers_of(nd::layout::make_layout(model, run, nd::ParallelConfig{.pp = 2})) == std::vector<std::int64_t>{2, 2});
  run.layers_per_chunk = {{1, 3}};
  CHECK(layers_of(nd::layout::make_layout(model, run, nd::ParallelConfig{.pp = 2})) == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("chunks go where the schedule holds them", "[layout]") {
  nd::ResolvedRun run;
  run.layers_per_chunk = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  const auto counts = [&](nd::Schedule schedule, int vpp) {
    const nd::ParallelConfig config{.pp = 4, .vpp = vpp, .micro_batch_num = 8, .schedule = schedule};
    std::vector<std::vector<std::int64_t>> out;
    for (const auto& stage : nd::layout::scheduled_layout(uniform_model(vpp == 1 ? 10 : 36), run, config).stages) {
      out.emplace_back();
      for (const auto& chunk : stage) out.back().push_back(chunk.layers());
    }
    return out;
  };
  using Counts = std::vector<std::vector<std::int64_t>>;
  CHECK(counts(nd::Schedule::interleaved, 2) == Counts{{1, 5}, {2, 6}, {3, 7}, {4, 8}});
  CHECK(counts(nd::Schedule::zb_v, 2) == Counts{{1, 8}, {2, 7}, {3, 6}, {4, 5}});  // down and back
  run.layers_per_chunk = {{1, 2, 3, 4}};
  CHECK(counts(nd::Schedule::dualpipe, 1) == Counts{{1, 4}, {2, 3}, {3, 2}, {4, 1}});  // both ways
}

TEST_CASE("every layer has exactly one place", "[layout]") {
  for (int layers : {1, 7, 31, 61, 126})
    for (int pp = 1; pp <= std::min(layers, 16); ++pp)
      for (int vpp : {1, 2, 3}) {
        if (pp * vpp > layers || (pp == 1 && vpp > 1)) continue;
        const auto counts = layers_of(nd::layout::make_layout(uniform_model(layers), {}, nd::ParallelConfig{.pp = pp, .vpp = vpp}));
        CHECK(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == layers);
      }
}

TEST_CASE("a stated layout is taken as it is", "[layout]") {
  nd::ResolvedRun run;
  run.layers_per_chunk = {{1, 2, 2, 3}};
  CHECK(layers_of(nd::layout::make_layout(uniform_model(8), run, nd::ParallelConfig{.pp = 4})) == std::vector<std::int64_t>{1, 2, 2, 3});
  // Another number of stages than stated: the statement is about another strategy.
  CHECK(layers_of(nd::layout::make_layout(uniform_model(8), run, nd::ParallelConfig{.pp = 2})) == std::vector<std::int64_t>{4, 4});
}

TEST_CASE("kinds follow the order of the layers over chunks", "[layout]") {
  auto model = uniform_model(8);
  model.kinds.resize(2);
  model.layer_kind = {0, 0, 0, 1, 1, 1, 1, 1};
  // Interleaving, pp 2, vpp 2: chunk 0 holds layers 0-1 and 2-3, chunk 1 layers 4-5 and 6-7.
  const auto layout = nd::layout::make_layout(model, {}, nd::ParallelConfig{.pp = 2, .vpp = 2});
  CHECK(layout.stages[0][0].layers_by_kind == std::vector<std::int64_t>{2, 0});
  CHECK(layout.stages[1][0].layers_by_kind == std::vector<std::int64_t>{1, 1});
  CHECK(layout.stages[1][1].layers_by_kind == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("recompute lists count per stage and spread over its chunks", "[layout]") {
  nd::ResolvedRun run;
  run.full_recompute_layers = {3, 0};
  const auto layout = nd::layout::make_layout(uniform_model(8), run, nd::ParallelConfig{.pp = 2, .vpp = 2});
  CHECK(layout.stages[0][0].full_recompute == 2);
  CHECK(layout.stages[0][1].full_recompute == 1);
  CHECK(layout.stages[1][0].full_recompute == 0);
}

TEST_CASE("micro-batches in flight follow the published counts", "[layout]") {
  nd::ParallelConfig config{.pp = 4, .micro_batch_num = 16};
  config.schedule = nd::Schedule::one_f_one_b;  // min(m, p - i)
  CHECK(nd::layout::chunks_in_flight(config, 0) == 4);
  CHECK(nd::layout::chunks_in_flight(config, 3) == 1);
  config.micro_batch_num = 2;
  CHECK(nd::layout::chunks_in_flight(config, 0) == 2);
  config.micro_batch_num = 16;
  config.schedule = nd::Schedule::gpipe;  // m
  CHECK(nd::layout::chunks_in_flight(config, 3) == 16);
  config.schedule = nd::Schedule::interleaved;  // 2(p-i-1) + (v-1)p + 1
  config.vpp = 3;
  CHECK(nd::layout::chunks_in_flight(config, 0) == 2 * 3 + 2 * 4 + 1);
  CHECK(nd::layout::chunks_in_flight(config, 3) == 2 * 4 + 1);
}
