// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nd/scenario.hpp"
#include "nd/schedule.hpp"

namespace nd::space {

/// What the constraints ask of a scenario, computed once. Immutable; thread-safe. Keeps a reference: the scenario must
/// outlive it.
class SpaceContext {
 public:
  explicit SpaceContext(const Scenario& from);

  const Scenario& scenario;
  const CapabilityProfile& can;
  std::int64_t devices, global_batch, seq_length, layers;
  bool moe;
  std::vector<std::int64_t> heads;         ///< counts that tp must divide (query heads, linear-attention heads)
  std::vector<std::int64_t> kv_heads;      ///< counts that tp must divide or replicate
  std::vector<std::int64_t> widths;        ///< dense and shared-expert widths
  std::vector<std::int64_t> expert_widths;
  std::vector<std::int64_t> experts;
  std::vector<std::int64_t> device_divisors, batch_divisors, expert_divisors;
  std::vector<bool> schedules;             ///< by Schedule: those the framework offers
  [[nodiscard]] bool offers(Schedule schedule) const { return schedules[static_cast<std::size_t>(schedule)]; }
  bool selective_recompute_differs;        ///< the profile's selective mode drops something
};

}  // namespace nd::space
