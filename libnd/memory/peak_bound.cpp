// SPDX-License-Identifier: Apache-2.0
#include "memory/peak_bound.hpp"

#include <algorithm>

#include "memory/stage_content.hpp"

namespace nd::memory {

KeptLayers kept_layers(std::span<const layout::Chunk> chunks, const KeptFront& front) {
  // Any moment of the schedule bounds the heaviest one: that with most layers is near it.
  std::vector<double> layers;
  for (const layout::Chunk& chunk : chunks) layers.push_back(static_cast<double>(chunk.layers()));
  const std::span<const double> counts = front.heaviest(layers);
  KeptLayers out;
  out.by_kind.resize(chunks.front().layers_by_kind.size());
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    for (std::size_t k = 0; k < out.by_kind.size(); ++k) {
      const RecomputeShares shares = recompute_shares(chunks[c], k);
      const double kept = counts[c] * static_cast<double>(chunks[c].layers_by_kind[k]);
      out.by_kind[k][0] += kept * shares.off;
      out.by_kind[k][1] += kept * shares.selective;
      out.by_kind[k][2] += kept * shares.full;
    }
  }
  return out;
}

StaticRates static_rates(const Scenario& scenario, const ParallelConfig& config, const StateRates& rates) {
  const MemoryProfile& memory = scenario.profile.memory;
  const bool persist = !memory.gradients_freed_between_steps || config.micro_batch_num > 1;
  // Where whole gradients stand in for the shards they are counted elsewhere.
  const bool whole = memory.accumulates_whole_gradients && config.micro_batch_num > 1 && config.zero >= ZeroLevel::gradients;
  StaticRates out;
  for (std::size_t i = 0; i < kParameterClassCount; ++i) {
    const double gradient = persist && !whole ? rates.gradient[i] : 0.0;
    out.vector[i] = rates.weight[i] + gradient + rates.main[i] + rates.moments[i];
    out.matrix[i] = rates.weight_matrix[i] + gradient + rates.main[i] + rates.moments_matrix[i];
  }
  return out;
}

double static_bound(const ElementCount& elements, const StaticRates& rates) { return StateRates::sum(elements, rates.vector, rates.matrix); }

double kept_bound(const KeptLayers& kept, const ShapeSummary& shape) {
  double bytes = 0;
  for (std::size_t k = 0; k < kept.by_kind.size(); ++k)
    for (std::size_t mode = 0; mode < 3; ++mode) bytes += kept.by_kind[k][mode] * shape.kinds[k].saved[mode];
  return bytes;
}

double lightest_bound(const KeptLayers& kept, const ShapeSummary& shape) {
  double bytes = 0;
  for (std::size_t k = 0; k < kept.by_kind.size(); ++k) {
    const auto& saved = shape.kinds[k].saved;
    for (const double times : kept.by_kind[k]) bytes += times * *std::min_element(saved.begin(), saved.end());
  }
  return bytes;
}

double stage_bound(const ReserveRule& reserve, double static_bytes, double kept_bytes) {
  // Sums in another order than the price: the margin is far above what rounding does.
  constexpr double kMargin = 1 - 1e-12;
  return kMargin * reserve.reserved(static_bytes, kept_bytes);
}

}  // namespace nd::memory
