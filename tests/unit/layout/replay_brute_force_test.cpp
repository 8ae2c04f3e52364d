// SPDX-License-Identifier: Apache-2.0
// Tiny pipelines, all orders: is there a shorter step with the same passes and the same memory?
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <unordered_set>

#include "unit/layout/replay_support.hpp"

namespace {

using nd::Schedule;
using nd::ScheduleShape;

constexpr int kMostStages = 3;

/// Passes of integer length; weight = 0: the backward is whole (`backward` is all of it). A stage may hold `limit`
/// micro-batches between the start of the forward and the end of the last backward pass.
struct Tiny {
  int stages = 1, micro_batches = 1;
  int forward = 1, backward = 1, weight = 1;
  std::array<int, kMostStages> limit{};
};

/// Units of time each kind of pass has run on each stage. Micro-batches are alike, so each kind runs in order without
/// loss.
struct State {
  std::array<std::array<int, 3>, kMostStages> done{};

  [[nodiscard]] std::uint64_t key() const {
    std::uint64_t out = 0;
    for (const auto& stage : done)
      for (const int units : stage) out = out * 64 + static_cast<std::uint64_t>(units);
    return out;
  }
};

class Search {
 public:
  explicit Search(const Tiny& tiny) : tiny_(tiny) {}

  /// Fewest units of time in which all passes can run, in any order, a pass even being interrupted for another: a lower
  /// bound for every list of passes. Breadth first, one unit of time per level.
  int shortest() {
    std::vector<State> level{State{}};
    for (int time = 0;; ++time) {
      std::vector<State> next;
      std::unordered_set<std::uint64_t> seen;
      for (const State& state : level) {
        if (finished(state)) return time;
        step(state, state, 0, [&](const State& after) {
          if (seen.insert(after.key()).second) next.push_back(after);
        });
      }
      level = std::move(next);
    }
  }

 private:
  [[nodiscard]] bool finished(const State& state) const {
    for (int s = 0; s < tiny_.stages; ++s) {
      const auto& done = state.done[static_cast<std::size_t>(s)];
      if (done[1] < tiny_.micro_batches * tiny_.backward || done[2] < tiny_.micro_batches * tiny_.weight) return false;
    }
    return true;
  }
  /// What a stage may do in the unit of time that starts at `state`.
  [[nodiscard]] bool may(const State& state, int stage, int kind) const {
    const auto s = static_cast<std::size_t>(stage);
    const auto& done = state.done[s];
    const int length = kind == 0 ? tiny_.forward : kind == 1 ? tiny_.backward : tiny_.weight;
    if (length == 0 || done[static_cast<std::size_t>(kind)] == tiny_.micro_batches * length) return false;
    const int number = done[static_cast<std::size_t>(kind)] / length;
    if (kind == 0) {
      const bool starts = done[0] % length == 0;
      const int released = tiny_.weight > 0 ? done[2] / tiny_.weight : done[1] / tiny_.backward;
      if (starts && number - released >= tiny_.limit[s]) return false;
      return stage == 0 || state.done[s - 1][0] / length > number;
    }
    if (kind == 2) return done[1] / tiny_.backward > number;
    if (stage + 1 < tiny_.stages) return state.done[s + 1][1] / length > number;
    return done[0] / tiny_.forward > number;
  }
  template <class Visit>
  void step(const State& before, const State& after, int stage, const Visit& visit) const {
    if (stage == tiny_.stages) return visit(after);
    bool worked = false;
    for (int kind = 0; kind < 3; ++kind) {
      if (!may(before, stage, kind)) continue;
      worked = true;
      State more = after;
      ++more.done[static_cast<std::size_t>(stage)][static_cast<std::size_t>(kind)];
      step(before, more, stage + 1, visit);
    }
    // Doing a weight gradient now or work that is waiting never helps less than standing still, except that a forward
    // takes memory; so standing still is tried beside forwards only.
    if (!worked || may(before, stage, 0)) step(before, after, stage + 1, visit);
  }

  Tiny tiny_;
};

double replayed(Schedule schedule, const Tiny& tiny) {
  const auto& row = nd::layout::schedule_row(schedule);
  const ScheduleShape shape{tiny.stages, 1, tiny.micro_batches, 1, 0};
  const double f = tiny.forward, b = tiny.backward, w = tiny.weight;
  const auto times = nd::test::equal_times(row, shape, {f, b, w, f + b + w});
  return nd::replay_schedule(schedule, {.shape = shape, .times = times}).makespan.value;
}

Tiny with_limits(Schedule schedule, Tiny tiny) {
  for (int s = 0; s < tiny.stages; ++s)
    tiny.limit[static_cast<std::size_t>(s)] = static_cast<int>(
        nd::layout::schedule_row(schedule).held({tiny.stages, 1, tiny.micro_batches, 1, 0}, s).together);
  return tiny;
}

}  // namespace

TEST_CASE("no order with whole backwards and 1F1B's memory beats 1F1B", "[layout][replay]") {
  for (int p = 1; p <= 3; ++p)
    for (int m = 1; m <= 4; ++m) {
      const Tiny tiny = with_limits(Schedule::one_f_one_b, {p, m, 1, 2, 0});
      INFO("p " << p << " m " << m);
      CHECK(Search(tiny).shortest() == replayed(Schedule::one_f_one_b, tiny));
    }
}

TEST_CASE("no order with split backwards and ZB-H1's memory beats ZB-H1 for F = B = W", "[layout][replay]") {
  for (int p = 1; p <= 3; ++p)
    for (int m = 1; m <= 4; ++m) {
      const Tiny tiny = with_limits(Schedule::zb_h1, {p, m, 1, 1, 1});
      INFO("p " << p << " m " << m);
      CHECK(Search(tiny).shortest() == replayed(Schedule::zb_h1, tiny));
    }
}

// With a short weight half the memory of 1F1B leaves room for nothing better either: (p - 1)(F + B - W) is what it
// costs.
TEST_CASE("uneven passes: ZB-H1 against all orders", "[layout][replay]") {
  for (int p = 1; p <= 3; ++p)
    for (int m = p; m <= 4; ++m)
      for (const auto& lengths :
           {std::array<int, 3>{2, 2, 1}, std::array<int, 3>{2, 1, 1}, std::array<int, 3>{1, 2, 1}}) {
        const Tiny tiny = with_limits(Schedule::zb_h1, {p, m, lengths[0], lengths[1], lengths[2]});
        INFO("p " << p << " m " << m << " F " << lengths[0] << " B " << lengths[1] << " W " << lengths[2]);
        const double best = Search(tiny).shortest(), found = replayed(Schedule::zb_h1, tiny);
        CHECK(found >= best);
        CHECK(found - best <= 0);
      }
}

// The same search without the memory limit finds a shorter step: the limit is what ZB-H1 pays for.
TEST_CASE("more memory allows a shorter step than ZB-H1", "[layout][replay]") {
  Tiny tiny = with_limits(Schedule::zb_h1, {3, 4, 1, 1, 1});
  const double found = replayed(Schedule::zb_h1, tiny);
  tiny.limit = {4, 4, 4};
  CHECK(Search(tiny).shortest() <= found);
  Tiny whole = with_limits(Schedule::one_f_one_b, {3, 4, 1, 2, 0});
  // One micro-batch at a time instead of p - i: longer.
  whole.limit = {1, 1, 1};
  CHECK(Search(whole).shortest() > replayed(Schedule::one_f_one_b, whole));
}
