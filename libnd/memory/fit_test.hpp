// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/memory.hpp"
#include "nd/parallel_config.hpp"
#include "nd/scenario.hpp"

namespace nd::memory {

/// reserved = static + factor * dynamic + constant; docs/cost_model_memory.md#memory-reserved.
struct ReserveRule {
  double factor = 1;
  double constant = 0;  ///< bytes; what is around the allocator's blocks included
  double holes = 0;     ///< bytes; of the allocator alone
  /// What the allocator's blocks take without either constant.
  [[nodiscard]] double held(double static_bytes, double dynamic_bytes) const {
    return static_bytes + factor * dynamic_bytes;
  }
  [[nodiscard]] double reserved(double static_bytes, double dynamic_bytes) const { return held(static_bytes, dynamic_bytes) + constant; }
};

[[nodiscard]] ReserveRule reserve_rule(const Scenario& scenario, const ParallelConfig& config);
/// Communicators a rank of this strategy opens: one per dimension of more than one rank, and that of the whole job.
[[nodiscard]] int communicators(const ParallelConfig& config);
/// What the fit test compares with; docs/cost_model_memory.md#memory-budget.
[[nodiscard]] Bytes memory_budget(const Scenario& scenario);
/// no: more than the budget; tight: less, but not by the error of the model; yes otherwise.
[[nodiscard]] Fit judge_fit(const StageMemory& stage, Bytes budget, double model_error);

}  // namespace nd::memory
