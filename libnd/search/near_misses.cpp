// SPDX-License-Identifier: Apache-2.0
#include "search/near_misses.hpp"

#include <algorithm>
#include <tuple>

#include "search/memory_parts.hpp"
#include "search/pricer.hpp"

namespace nd::search {

void NearMisses::add(const ParallelConfig& config, Bytes peak) {
  const Key key{config.dp, config.tp, config.pp, config.cp, config.ep};
  // The degrees are the outer loops of the enumeration: mostly the entry is the one before.
  if (last_ == best_.end() || last_->first != key) {
    const auto [found, inserted] = best_.try_emplace(key, Miss{config, peak});
    last_ = found;
    if (inserted) return;
  }
  auto& miss = last_->second;
  if (std::tie(peak.value, config) < std::tie(miss.peak.value, miss.config)) miss = {config, peak};
}

std::vector<NearMiss> NearMisses::take(const Scenario& scenario, std::size_t count) {
  std::vector<Miss> all;
  all.reserve(best_.size());
  for (const auto& [key, miss] : best_) all.push_back(miss);
  std::sort(all.begin(), all.end(), [](const Miss& a, const Miss& b) {
    return std::tie(a.peak.value, a.config) < std::tie(b.peak.value, b.config);
  });
  all.resize(std::min(count, all.size()));
  std::vector<NearMiss> out;
  Pricer pricer(scenario);
  for (const auto& miss : all) {
    NearMiss entry;
    entry.config = miss.config;
    entry.memory = pricer.memory(miss.config);
    entry.lacks = entry.memory.peak().reserved - entry.memory.budget;
    const auto part = largest_part(entry.memory.peak());
    entry.largest_part = part.name;
    entry.largest = part.bytes;
    entry.change = cheapest_change(scenario, miss.config);
    out.push_back(std::move(entry));
  }
  return out;
}

LargestPart largest_part(const StageMemory& stage) {
  const auto largest = std::max_element(kMemoryParts.begin(), kMemoryParts.end(), [&stage](const MemoryPart& a, const MemoryPart& b) {
    return stage.*a.bytes < stage.*b.bytes;
  });
  return {largest->name, stage.*largest->bytes};
}

}  // namespace nd::search
