// SPDX-License-Identifier: Apache-2.0
#include "memory/in_flight.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace nd::memory {

namespace {

/// Chunk of the n-th forward pass of an interleaved stage: micro-batches go through in groups of p, each group through
/// chunk 0, then chunk 1, ...; a last group may be smaller (Narayanan et al. 2021, section 2.2.2).
class InterleavedOrder {
 public:
  InterleavedOrder(int stages, int chunks, int micro_batches) : p_(stages), v_(chunks), m_(micro_batches) {}

  [[nodiscard]] std::int64_t total() const { return m_ * v_; }
  [[nodiscard]] std::size_t forward(std::int64_t n) const {
    const std::int64_t group = n / (p_ * v_);
    const std::int64_t size = std::min(p_, m_ - group * p_);
    return static_cast<std::size_t>((n - group * p_ * v_) / size);
  }
  [[nodiscard]] std::size_t backward(std::int64_t n) const { return static_cast<std::size_t>(v_ - 1) - forward(n); }

 private:
  std::int64_t p_, v_, m_;
};

double total_bytes(std::span<const double> bytes, std::span<const double> counts) {
  double sum = 0;
  for (std::size_t c = 0; c < bytes.size(); ++c) sum += bytes[c] * counts[c];
  return sum;
}

void interleave(const KeptQuery& query, std::span<const double> bytes, std::span<double> counts) {
  const InterleavedOrder order(query.stages, static_cast<int>(bytes.size()), query.micro_batches);
  const auto held = std::min(order.total(), static_cast<std::int64_t>(query.chunks));
  std::fill(counts.begin(), counts.end(), 0.0);
  for (std::int64_t n = 0; n < held; ++n) counts[order.forward(n)] += 1;

  // Steady state: one backward, one forward. The number held stays, the mix of chunks moves with a period of p * v passes.
  const double start = total_bytes(bytes, counts);
  const std::int64_t period = std::min<std::int64_t>(std::int64_t{query.stages} * static_cast<std::int64_t>(bytes.size()), order.total() - held);
  double best = start, now = start;
  std::int64_t best_step = 0;
  for (std::int64_t k = 0; k < period; ++k) {
    now += bytes[order.forward(held + k)] - bytes[order.backward(k)];
    if (now > best * (1 + 1e-12)) {
      best = now;
      best_step = k + 1;
    }
  }
  for (std::int64_t k = 0; k < best_step; ++k) {
    counts[order.backward(k)] -= 1;
    counts[order.forward(held + k)] += 1;
  }
}

}  // namespace

void spread_chunks(const KeptQuery& query, std::span<const double> bytes, std::span<double> counts) {
  const auto chunks = static_cast<double>(bytes.size());
  if (query.schedule != Schedule::interleaved || bytes.size() < 2) {
    std::fill(counts.begin(), counts.end(), query.chunks / chunks);
    return;
  }
  interleave(query, bytes, counts);
}

}  // namespace nd::memory
