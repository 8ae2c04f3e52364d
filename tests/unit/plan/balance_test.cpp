// SPDX-License-Identifier: Apache-2.0
#include "plan/balance.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <random>

using namespace nd;
using nd::plan::balance_layers;
using nd::plan::BalanceTask;
using nd::plan::LayerRange;

namespace {

/// A model whose layers have seconds of their own, with a table in front and a head behind.
struct Model {
  std::vector<double> layer;  ///< forward; the backward takes twice as long
  double table = 0, head = 0;
  std::int64_t room = std::numeric_limits<std::int64_t>::max();  ///< layers a stage holds at most

  [[nodiscard]] PassTimes times(const LayerRange& range) const {
    double forward = std::accumulate(layer.begin() + range.first, layer.begin() + range.first + range.count, 0.0);
    if (range.first == 0) forward += table;
    if (range.first + range.count == static_cast<std::int64_t>(layer.size())) forward += head;
    return {.forward = {forward}, .backward_input = {forward}, .backward_weight = {forward}, .recompute = {}, .joined_saving = {}};
  }
  [[nodiscard]] auto price() const {
    return [this](int, std::span<const LayerRange> chunks, std::span<PassTimes> times) {
      std::int64_t held = 0;
      for (std::size_t c = 0; c < chunks.size(); ++c) {
        times[c] = this->times(chunks[c]);
        held += chunks[c].count;
      }
      return held <= room;
    };
  }
};

/// Every way to lay the layers out, replayed.
double brute_force(const BalanceTask& task, int chunks) {
  const int p = task.shape.stages;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(p * chunks), 0);
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(std::size_t, std::int64_t)> spread = [&](std::size_t at, std::int64_t left) {
    if (at + 1 < counts.size()) {
      for (std::int64_t n = task.least; n <= left; ++n) {
        counts[at] = n;
        spread(at + 1, left - n);
      }
      return;
    }
    if (left < task.least) return;
    counts[at] = left;
    std::vector<std::vector<LayerRange>> held(static_cast<std::size_t>(p), std::vector<LayerRange>(static_cast<std::size_t>(chunks)));
    for (int s = 0; s < p; ++s)
      for (int c = 0; c < chunks; ++c) {
        const auto place = static_cast<std::size_t>(chunk_position(task.schedule, task.shape, s, c));
        held[static_cast<std::size_t>(s)][static_cast<std::size_t>(c)] = {
            std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(place), std::int64_t{0}), counts[place]};
      }
    std::vector<PassTimes> times(counts.size());
    for (int s = 0; s < p; ++s) {
      const std::span<PassTimes> mine(times.data() + s * chunks, static_cast<std::size_t>(chunks));
      if (!task.price(s, held[static_cast<std::size_t>(s)], mine)) return;
    }
    const auto replay = replay_schedule(task.schedule, {.shape = task.shape, .times = times, .hop = task.hop, .p2p_exposed = task.p2p_exposed});
    REQUIRE(replay.ok());
    best = std::min(best, replay.makespan.value);
  };
  spread(0, task.layers);
  return best;
}

}  // namespace

TEST_CASE("the balanced layout is the fastest of all layouts", "[plan]") {
  std::mt19937 random(4711);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int uneven = 0, infeasible = 0, tight = 0;
  for (int round = 0; round < 400; ++round) {
    const int chunks = draw(1, 2);
    const int p = draw(chunks == 2 ? 2 : 1, chunks == 2 ? 3 : 4);
    Model model;
    model.layer.resize(static_cast<std::size_t>(draw(p * chunks, chunks == 2 ? 9 : 12)));
    for (double& seconds : model.layer) seconds = draw(2, 6);
    model.table = draw(0, 2);
    model.head = draw(0, 8);
    if (draw(0, 2) == 0) model.room = draw(1, 5);
    BalanceTask task{.schedule = chunks == 2 ? Schedule::interleaved : Schedule::one_f_one_b,
                     .shape = {.stages = p, .chunks = chunks, .micro_batches = p * draw(1, 3)},
                     .layers = static_cast<std::int64_t>(model.layer.size()),
                     .least = chunks == 2 ? 1 : draw(0, 1),
                     .price = model.price()};
    if (draw(0, 1) == 0) task.hop = {Seconds{0.5}};
    const auto layout = balance_layers(task);
    const double expected = brute_force(task, chunks);
    INFO("round " << round << " p " << p << " chunks " << chunks);
    REQUIRE(layout.has_value() == (expected < std::numeric_limits<double>::infinity()));
    if (!layout) {
      ++infeasible;
      continue;
    }
    CHECK(layout->proven);
    CHECK(layout->makespan.value == Approx(expected).epsilon(1e-12));
    CHECK(layout->bound <= layout->makespan);
    std::int64_t held = 0, most = 0, fewest = task.layers;
    for (const auto& stage : layout->layers) {
      const auto sum = std::accumulate(stage.begin(), stage.end(), std::int64_t{0});
      held += sum;
      most = std::max(most, sum);
      fewest = std::min(fewest, sum);
    }
    CHECK(held == task.layers);
    CHECK(most <= model.room);
    uneven += most > fewest + 1;
    tight += most == model.room;
  }
  CHECK(uneven > 20);
  CHECK(infeasible > 5);
  CHECK(tight > 20);
}

TEST_CASE("a heavy head takes layers from the last stage", "[plan]") {
  // 8 layers of one second, head of 2, four stages, many micro-batches: every stage at 10 / 4 = 2.5 is out of reach; 3, 2 + 2
  // of head and so on: the busiest stage of [2, 2, 3, 1] and [3, 2, 2, 1] costs 3, of [2, 2, 2, 2] 4.
  const Model model{.layer = std::vector<double>(8, 1), .head = 2};
  BalanceTask task{.shape = {.stages = 4, .micro_batches = 64}, .layers = 8, .price = model.price()};
  const auto layout = balance_layers(task);
  REQUIRE(layout);
  CHECK(layout->proven);
  CHECK(layout->layers[3][0] == 1);
  // Forward 1 + backward 2 = 3 seconds a layer: 64 micro-batches of the busiest stage are 64 * 9.
  CHECK(layout->makespan.value >= 64 * 9);
  CHECK(layout->makespan.value < 64 * 9 + 8 * 9);
}

TEST_CASE("126 layers on 16 stages are laid out exactly in few replays", "[plan]") {
  // As deep as Llama 3.1 405B; the head of its vocabulary costs about as much as 0.66 of a layer.
  const Model model{.layer = std::vector<double>(126, 1), .head = 0.66};
  BalanceTask task{.shape = {.stages = 16, .micro_batches = 64}, .layers = 126, .price = model.price()};
  const auto layout = balance_layers(task);
  REQUIRE(layout);
  CHECK(layout->proven);
  CHECK(layout->replays < task.most_replays);
  // 126 = 14 * 8 + 2 * 7: no layout has a busiest stage below 8 layers.
  CHECK(layout->makespan.value >= 64 * 8 * 3);
}

TEST_CASE("a part of the model on two stages is not laid out", "[plan]") {
  const Model model{.layer = std::vector<double>(8, 1)};
  const BalanceTask task{.schedule = Schedule::dualpipe, .shape = {.stages = 4, .micro_batches = 8}, .layers = 8, .price = model.price()};
  CHECK_FALSE(balance_layers(task));
}
