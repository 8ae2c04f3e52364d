// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/memory.hpp"
#include "nd/parallel_config.hpp"
#include "nd/scenario.hpp"

namespace nd::memory {

/// reserved = static_factor * static + factor * dynamic + constant; docs/cost_model_memory.md#memory-reserved.
struct ReserveRule {
  double factor = 1;
  double constant = 0;  ///< bytes
  double static_factor = 1;
  [[nodiscard]] double reserved(double static_bytes, double dynamic_bytes) const {
    return static_factor * static_bytes + factor * dynamic_bytes + constant;
  }
};

[[nodiscard]] ReserveRule reserve_rule(const Scenario& scenario, const ParallelConfig& config);
/// Communicators a rank of this strategy opens: one per dimension of more than one rank, and that of the whole job.
[[nodiscard]] int communicators(const ParallelConfig& config);
/// What the fit test compares with; docs/cost_model_memory.md#memory-budget.
[[nodiscard]] Bytes memory_budget(const Scenario& scenario);
/// no: more than the budget; tight: less, but not by the error of the model; yes otherwise.
[[nodiscard]] Fit judge_fit(const StageMemory& stage, Bytes budget, double model_error);

}  // namespace nd::memory
