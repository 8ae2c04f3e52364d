// SPDX-License-Identifier: Apache-2.0
#include "nd/memory.hpp"

#include <array>
#include <cstddef>

#include "memory/memory_model.hpp"

namespace nd {

MemoryBreakdown estimate_memory(const Scenario& scenario, const ParallelConfig& config, ReadingTime reading) {
  MemoryBreakdown out;
  memory::MemoryModel(scenario).estimate(config, out, reading);
  return out;
}

std::vector<MemoryLine> memory_ledger(const Scenario& scenario, const ParallelConfig& config, int stage) {
  return memory::MemoryModel(scenario).ledger(config, stage);
}

const char* to_text(Instant instant) {
  constexpr std::array<const char*, 5> kText{"loss", "backward", "end_of_backward", "optimizer_step", "mask"};
  return kText.at(static_cast<std::size_t>(instant));
}

const char* to_text(Fit fit) {
  constexpr std::array<const char*, 3> kText{"yes", "tight", "no"};
  return kText.at(static_cast<std::size_t>(fit));
}

}  // namespace nd
