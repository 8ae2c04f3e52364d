// SPDX-License-Identifier: Apache-2.0
#include "plan/offload.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>

using namespace nd::plan;

namespace {

std::vector<double> movable(const CopyStage& stage) {
  std::vector<double> out;
  for (const auto& layer : stage.layers) out.push_back(layer.movable);
  return out;
}

/// `n` layers, forward 1 each, of which the last ends the warm-up.
CopyStage alike(std::size_t n, const CopyLayer& layer) {
  CopyStage stage;
  stage.layers.assign(n, layer);
  stage.movable_layers = n - 1;
  return stage;
}

/// Three layers: 4 bytes plain, 1 recomputed; backward 2 or 3; a byte takes one forward to copy.
CopyStage three(double budget, double cost) {
  CopyStage stage = alike(3, {.forward = 1, .movable = 4, .options = {{4, 2}, {1, 3}}});
  stage.link = {.seconds_per_byte = 1, .overlap = 1, .cost_per_byte = cost};
  stage.budget = budget;
  return stage;
}

/// Of each kind some layers that keep everything, then those that are recomputed, then the others that keep everything.
bool in_order(const CopyStage& stage, const std::vector<std::size_t>& option) {
  for (int kind = 0; kind < 2; ++kind) {
    int changes = 0;
    std::size_t before = 0;
    for (std::size_t i = 0; i < option.size(); ++i) {
      if (stage.layers[i].kind != kind) continue;
      if (option[i] != before) ++changes;
      before = option[i];
    }
    if (changes > 2) return false;
  }
  return true;
}

/// Every option of every layer tried; for each the bytes that must move, moved by the earliest layers that may.
double brute_force(const CopyStage& stage) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> option(stage.layers.size(), 0);
  while (true) {
    double bytes = 0, seconds = 0;
    std::vector<double> wanted(stage.layers.size(), 0);
    for (std::size_t i = 0; i < option.size(); ++i) {
      const CopyLayer& layer = stage.layers[i];
      bytes += layer.options[option[i]].bytes;
      seconds += layer.forward + layer.options[option[i]].backward;
      if (option[i] == 0) wanted[i] = layer.movable;
    }
    double need = std::max(0.0, bytes - stage.budget);
    auto moved = copy_window(stage, wanted);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i] = std::min(moved[i], need / stage.layers[i].in_flight);
      need -= moved[i] * stage.layers[i].in_flight;
      seconds += 2 * stage.link.cost_per_byte * moved[i];
    }
    if (need < 1e-9 && in_order(stage, option) && !(transit_bytes(stage, option, moved) > 0)) best = std::min(best, seconds);
    std::size_t i = 0;
    while (i < option.size() && ++option[i] == stage.layers[i].options.size()) option[i++] = 0;
    if (i == option.size()) return best;
  }
}

}  // namespace

// Figures of the published prefix rule: each copy starts after its layer's forward, one stream, all done with the stage.
TEST_CASE("the copy window of four layers", "[plan]") {
  // Windows behind the layers: 3, 2, 1, 0 forwards, shared in order.
  const auto window = [](double copy) {
    CopyStage stage = alike(4, {.forward = 1, .movable = copy, .options = {{copy, 2}}});
    stage.link = {.seconds_per_byte = 1, .overlap = 1, .cost_per_byte = 0};
    return copy_window(stage, movable(stage));
  };
  CHECK(window(0.5) == std::vector<double>{0.5, 0.5, 0.5, 0});
  CHECK(window(1) == std::vector<double>{1, 1, 1, 0});
  CHECK(window(1.5) == std::vector<double>{1.5, 1.5, 0, 0});
  CHECK(window(4) == std::vector<double>{3, 0, 0, 0});
}

TEST_CASE("free copies move every layer before the one that ends the warm-up", "[plan]") {
  CopyStage stage = alike(4, {.forward = 1, .movable = 2, .options = {{2, 2}}});
  stage.movable_layers = 2;
  CHECK(copy_window(stage, movable(stage)) == std::vector<double>{2, 2, 0, 0});
}

TEST_CASE("the first layer moves half, the second is recomputed, the third keeps all", "[plan]") {
  // Window of the first layer: 2 forwards = 2 bytes. 4 - 2 + 1 + 4 = 7.
  const auto plan = plan_copies(three(7, 0), CopyScope::prefix);
  REQUIRE(plan);
  CHECK(plan->option == std::vector<std::size_t>{0, 1, 0});
  CHECK(plan->moved == std::vector<double>{2, 0, 0});
  CHECK(plan->bytes == 7);
  CHECK(plan->transit == 0);
  CHECK(plan->seconds == 3 + 4 + 3);
}

TEST_CASE("copies that cost give back what has room", "[plan]") {
  // Half a byte is free: 1.5 move; the layer takes 1 + 2 + 2 * 0.1 * 1.5 = 3.3.
  const auto plan = plan_copies(three(7.5, 0.1), CopyScope::prefix);
  REQUIRE(plan);
  CHECK(plan->moved[0] == Approx(1.5));
  CHECK(plan->seconds == Approx(3.3 + 4 + 3));
  CHECK(plan->bytes == Approx(7.5));
}

TEST_CASE("the prefix rule decides before it gives back; the best plan does not", "[plan]") {
  // Two bytes moved at 0.3: 3 + 1.2 + 4 + 3 = 11.2 against 3 + 4 + 4 = 11 without copies; but 1.5 are enough: 10.9.
  const auto prefix = plan_copies(three(7.5, 0.3), CopyScope::prefix);
  REQUIRE(prefix);
  CHECK(prefix->moved_bytes() == 0);
  CHECK(prefix->seconds == Approx(11));
  const auto any = plan_copies(three(7.5, 0.3), CopyScope::any);
  REQUIRE(any);
  CHECK(any->moved_bytes() == Approx(1.5));
  CHECK(any->seconds == Approx(10.9));
}

TEST_CASE("without room to come back nothing moves", "[plan]") {
  // Two layers of 4, 6 bytes: 2 could move, but nothing behind them is released, so the 2 would have to stay.
  CopyStage stage = alike(2, {.forward = 1, .movable = 4, .options = {{4, 2}, {1, 3}}});
  stage.link = {.seconds_per_byte = 0.5, .overlap = 1, .cost_per_byte = 0};
  stage.budget = 6;
  for (const CopyScope scope : {CopyScope::prefix, CopyScope::any}) {
    const auto plan = plan_copies(stage, scope);
    REQUIRE(plan);
    CHECK(plan->moved_bytes() == 0);
    CHECK(plan->seconds == 3 + 4);
  }
}

TEST_CASE("plans keep their promises on random stages", "[plan]") {
  std::mt19937 random(99);
  const auto draw = [&random](int low, int high) { return static_cast<double>(std::uniform_int_distribution<int>(low, high)(random)); };
  int moved = 0, better = 0;
  for (int round = 0; round < 3000; ++round) {
    CopyStage stage;
    const double in_flight = draw(1, 4);
    std::vector<CopyLayer> kinds(2);
    for (int kind = 0; kind < 2; ++kind) {
      CopyLayer& layer = kinds[static_cast<std::size_t>(kind)];
      const double kept = draw(3, 9);
      layer = {draw(1, 4), in_flight, kept, kind, {{kept * in_flight, draw(2, 4)}, {in_flight, draw(5, 8)}}};
    }
    const auto layers = static_cast<std::size_t>(draw(1, 5));
    for (std::size_t i = 0; i < layers; ++i) stage.layers.push_back(kinds[static_cast<std::size_t>(draw(0, 1))]);
    stage.movable_layers = layers - 1;
    stage.link = {draw(0, 4) / 4, draw(1, 4) / 4, draw(0, 2) / 20};
    stage.budget = draw(0, 100);
    const auto none = plan_copies(stage, CopyScope::none);
    const auto prefix = plan_copies(stage, CopyScope::prefix);
    const auto any = plan_copies(stage, CopyScope::any);
    INFO("round " << round);
    if (none) REQUIRE(prefix);
    if (prefix) REQUIRE(any);
    const double tried = brute_force(stage);
    if (tried < std::numeric_limits<double>::infinity()) {
      REQUIRE(any);
      CHECK(any->seconds <= tried * (1 + 1e-9));
    }
    if (!any) continue;
    if (none) CHECK(prefix->seconds <= none->seconds * (1 + 1e-12));
    if (prefix) CHECK(any->seconds <= prefix->seconds * (1 + 1e-12));
    if (!prefix || any->seconds < prefix->seconds * (1 - 1e-9)) ++better;
    CHECK(any->bytes <= stage.budget * (1 + 1e-9) + 1e-9);
    CHECK(transit_bytes(stage, any->option, any->moved) <= any->transit + 1e-9);
    // What a layer moves it kept, and the copies behind it fit into the compute behind it.
    double after = 0, copies = 0;
    for (std::size_t i = layers; i-- > 0;) {
      copies += any->moved[i] * stage.link.seconds_per_byte;
      CHECK(any->moved[i] <= stage.layers[i].movable);
      if (any->moved[i] > 0) {
        CHECK(any->option[i] == 0);
        CHECK(i < stage.movable_layers);
      }
      CHECK(copies <= stage.link.overlap * after + 1e-9);
      after += stage.layers[i].forward;
    }
    if (any->moved_bytes() > 0) ++moved;
  }
  CHECK(moved > 300);
  CHECK(better > 50);
}
