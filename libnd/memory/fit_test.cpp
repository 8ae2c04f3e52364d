// SPDX-License-Identifier: Apache-2.0
#include "memory/fit_test.hpp"

#include <algorithm>

namespace nd::memory {

int communicators(const ParallelConfig& config) {
  if (config.devices() == 1) return 0;
  const std::int64_t data_ranks = std::int64_t{config.dp} * config.cp;
  int count = 1;  // the whole job
  for (const std::int64_t ranks : {std::int64_t{config.tp}, std::int64_t{config.pp}, std::int64_t{config.cp}, std::int64_t{config.ep},
                                   std::int64_t{config.etp}, data_ranks})
    if (ranks > 1 && ranks < config.devices()) ++count;
  const bool experts_differ = config.ep * config.etp > 1 && config.expert_dp() != data_ranks;
  if (experts_differ && config.expert_dp() > 1) ++count;
  return count;
}

ReserveRule reserve_rule(const Scenario& scenario, const ParallelConfig& config) {
  const MemoryProfile& memory = scenario.profile.memory;
  const DeviceMemory& device = scenario.cluster.device.memory;
  const bool single = config.devices() == 1;
  // The profile's constant was fitted against what the card can give in all, so it contains context and communicators
  // already; where the device's own figures say that these alone take more, they count.
  const double context = device.usable_is_allocatable ? 0.0 : device.runtime_context.value;
  const double around = context + communicators(config) * device.per_communicator.value;
  const double holes = (single ? memory.reserve_constant_single_gib : memory.reserve_constant_gib) * kGiB;
  return {.factor = single ? memory.reserve_factor_single : memory.reserve_factor,
          .constant = std::max(holes, around),
          .holes = holes};
}

Bytes memory_budget(const Scenario& scenario) {
  const DeviceMemory& device = scenario.cluster.device.memory;
  const Bytes usable = device.usable.value > 0 ? device.usable : device.nominal;
  Bytes wanted = usable;
  if (scenario.run.device_memory.value > 0) {
    wanted = scenario.run.device_memory;
  } else if (device.usual_budget && scenario.profile.can.style == DataParallelStyle::mindspore) {
    // max_device_memory of MindSpore; other trainers on the same device take what they get.
    wanted = *device.usual_budget;
  }
  return std::min(wanted, usable);
}

Fit judge_fit(const StageMemory& stage, Bytes budget, double model_error) {
  if (stage.reserved > budget) return Fit::no;
  return stage.reserved + stage.allocated * model_error > budget ? Fit::tight : Fit::yes;
}

}  // namespace nd::memory
