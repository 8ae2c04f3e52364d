// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "memory/ledger_summary.hpp"
#include "nd/parallel_config.hpp"
#include "nd/scenario.hpp"

namespace nd::memory {

/// Bytes one parameter costs a rank, by ParameterClass: bytes per element over the ranks that share it. Weights, gradients
/// and optimizer states have shardings of their own (docs/cost_model_memory.md#memory-static).
struct StateRates {
  using PerClass = std::array<double, kParameterClassCount>;

  PerClass weight{}, weight_matrix{};    ///< weight_matrix: of layer matrices, smaller where a frozen base is quantised
  PerClass gradient{}, main{};
  PerClass moments{}, moments_matrix{};  ///< moments_matrix: Muon keeps one state for layer matrices
  PerClass step_copy{};                  ///< fp16: fp32 copy of the gradient shard during the optimizer step
  PerClass optimizer_ranks{1, 1, 1};     ///< ranks that share the optimizer states
  PerClass weight_ranks{1, 1, 1};        ///< ranks that share the weights (1 = whole on every rank)
  // Adapters of a frozen base, bytes per trained element.
  double adapter_weight = 0, adapter_gradient = 0, adapter_moments = 0;

  [[nodiscard]] static double sum(const ElementCount& count, const PerClass& rate);
  [[nodiscard]] static double sum(const ElementCount& count, const PerClass& vector_rate, const PerClass& matrix_rate);
};

[[nodiscard]] StateRates state_rates(const Scenario& scenario, const ParallelConfig& config);

/// Bytes of all moments of one parameter as the optimizer keeps them, before sharding. `matrix`: a layer's matrix.
[[nodiscard]] double moment_bytes(OptimizerKind kind, double profile_bytes, bool matrix);

}  // namespace nd::memory
