// SPDX-License-Identifier: Apache-2.0
#include "layout/schedules/two_way.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "layout/schedules/emit.hpp"

namespace nd::layout {

namespace {

class Order {
 public:
  Order(const TwoWayStage& stage, PassList& out) : stage_(stage), out_(out), next_weight_(out.size()) {}

  void forward(int phase, bool joined = false) { put(PassKind::forward, phase, forwards_[phase]++, joined); }
  void backward(int phase) { put(PassKind::backward, phase, backwards_[phase]++, false); }
  /// Input half only; its weight half waits in line.
  void input(int phase) { put(PassKind::backward_input, phase, backwards_[phase]++, false); }
  void backward_maybe_split(int phase, bool split) { split ? input(phase) : backward(phase); }
  void overlapped(int forward_phase, int backward_phase) {
    forward(forward_phase, true);
    backward(backward_phase);
  }
  /// The weight half that has waited longest. The list itself is the queue.
  void weight() {
    while (out_[next_weight_].kind != PassKind::backward_input) ++next_weight_;
    const Pass input = out_[next_weight_++];
    emit(out_, PassKind::backward_weight, input.chunk, input.unit);
  }

 private:
  void put(PassKind kind, int phase, int number, bool joined) {
    const int chunk = phase ^ (stage_.swapped ? 1 : 0);
    const int first = stage_.second_batch && chunk == 1 ? stage_.micro_batches : 0;
    emit(out_, kind, chunk, first + number, joined);
  }
  TwoWayStage stage_;
  PassList& out_;
  std::size_t next_weight_;
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
};

}  // namespace

void two_way_passes(const TwoWayStage& stage, PassList& out) {
  const int inner = stage.depth - stage.from_end - 1;  // stages between this one and the middle
  const int outer = stage.from_end + 1;
  Order order(stage, out);
  for (int n = 0; n < 2 * inner; ++n) order.forward(0);
  for (int n = 0; n < outer; ++n) {
    order.forward(0);
    order.forward(1);
  }
  for (int n = 0; n < inner; ++n) {
    order.input(1);
    order.weight();
    order.forward(1);
  }
  const int main_steps = stage.micro_batches - 2 * stage.depth + outer;
  for (int n = 0; n < main_steps; ++n) {
    if (n == 0 && inner == 0) {
      // The middle stage does not overlap its first pair: its forward's output is waited for.
      order.forward(0);
      order.backward(1);
    } else {
      order.overlapped(0, 1);
    }
    order.overlapped(1, 0);
  }
  for (int n = 0; n < inner; ++n) {
    order.backward(1);
    order.overlapped(1, 0);
  }
  // From the middle of the drain on, weight gradients wait and fill the gaps.
  const int half = outer / 2;
  const bool odd = stage.from_end % 2 == 1;
  for (int n = 0; n < outer; ++n) {
    order.backward_maybe_split(1, n > half || (n == half && odd));
    order.backward_maybe_split(0, n >= half);
  }
  for (int n = 0; n < inner; ++n) {
    order.weight();
    order.input(0);
  }
  for (int n = 0; n < outer; ++n) order.weight();
}

HeldPeak two_way_held(int depth, int from_end) {
  const double kept = 2.0 * depth + 1;
  return {kept, from_end + 1.0, kept};
}

std::optional<double> two_way_bubble(int depth, const UniformTimes& times) {
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); };
  if (!same(times.forward, times.backward_input) || times.backward_weight > times.forward ||
      !same(times.joined, times.forward + times.backward()))
    return std::nullopt;
  return (depth - 1) * (times.joined + times.backward() - 3 * times.backward_weight);
}

}  // namespace nd::layout
