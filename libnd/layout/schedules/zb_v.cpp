// SPDX-License-Identifier: Apache-2.0
// ZB-V (Qi et al. 2023, section 6): two chunks per stage laid out as a V, backward split. This is the order made for
// F = B = W (the hand-made one the paper draws), which also stays valid for other durations.
#include <algorithm>

#include "layout/schedules/emit.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout::zb_v {

namespace {

// The order is drawn for at least 2p - 1 micro-batches. Fewer run the same order with the missing ones left out: passes
// of different micro-batches never wait for each other, so the order stays valid.
class Order {
 public:
  Order(const ScheduleShape& shape, PassList& out) : out_(out), real_(shape.micro_batches) {}

  void forward(int chunk) { put(PassKind::forward, chunk, forwards_[chunk]++); }
  void input(int chunk) { put(PassKind::backward_input, chunk, inputs_[chunk]++); }
  void weight(int chunk) { put(PassKind::backward_weight, chunk, weights_[chunk]++); }
  void backward(int chunk) {
    input(chunk);
    weight(chunk);
  }
  [[nodiscard]] int forwards(int chunk) const { return forwards_[chunk]; }
  [[nodiscard]] bool owes_weight(int chunk) const { return weights_[chunk] < inputs_[chunk]; }

 private:
  void put(PassKind kind, int chunk, int unit) {
    if (unit < real_) emit(out_, kind, chunk, unit);
  }
  PassList& out_;
  int real_;
  int forwards_[2] = {0, 0}, inputs_[2] = {0, 0}, weights_[2] = {0, 0};
};

}  // namespace

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.chunks != 2) return "zb_v needs exactly 2 model chunks per stage (vpp = 2)";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  const int p = shape.stages, m = std::max(shape.micro_batches, 2 * p - 1);
  Order order(shape, out);
  // Forwards until the first micro-batch comes back up the V, ...
  for (int n = 0; n < 2 * (p - stage) - 1; ++n) order.forward(0);
  for (int n = 0; n < stage; ++n) {
    order.forward(1);
    order.forward(0);
  }
  // ... then the second chunk forward and backward until the gradient reaches the first chunk.
  for (int n = 0; n < p - stage; ++n) {
    order.forward(1);
    order.backward(1);
  }
  while (order.forwards(1) < m) {
    if (order.forwards(0) < m) order.forward(0);
    order.backward(0);
    order.forward(1);
    order.backward(1);
  }
  // Gradients first, their weight halves fill the gaps at the end.
  for (int n = 0; n < stage; ++n) {
    order.input(0);
    order.input(1);
  }
  for (int n = 0; n < p - stage; ++n) order.backward(0);
  for (const int chunk : {1, 0})
    while (order.owes_weight(chunk)) order.weight(chunk);
}

// Every stage fills up to the 2p chunks that 1F1B's first stage holds (2p half-sized chunks = p whole ones).
HeldPeak held(const ScheduleShape& shape, int stage) {
  if (shape.micro_batches < 2 * shape.stages - 1) {
    PassList list;
    passes(shape, stage, list);
    return count_held(list, 1);
  }
  return {2.0 * shape.stages, 2.0 * stage + 1, 2.0 * shape.stages};
}

// With F = B = W every stage works without a gap between its first and its last pass; what is left is that stage i
// starts i forwards late (and may end as much later than stage 0).
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  const bool equal = times.forward == times.backward_input && times.forward == times.backward_weight;
  if (!equal || shape.micro_batches < 2 * shape.stages - 1) return std::nullopt;
  return (shape.stages - 1) * times.forward;
}

}  // namespace nd::layout::zb_v
