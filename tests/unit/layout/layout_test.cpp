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
