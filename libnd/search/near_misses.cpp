// SPDX-License-Identifier: Apache-2.0
#include "search/near_misses.hpp"

#include <algorithm>
#include <tuple>

#include "search/memory_parts.hpp"
#include "search/pricer.hpp"

namespace nd::search {

namespace {

bool same_degrees(const ParallelConfig& a, const ParallelConfig& b) {
  return a.dp == b.dp && a.tp == b.tp && a.pp == b.pp && a.cp == b.cp && a.ep == b.ep;
}

bool closer(const SearchPartial::Miss& a, const SearchPartial::Miss& b) {
  return std::tie(a.peak.value, a.config) < std::tie(b.peak.value, b.config);
}

}  // namespace

void NearMisses::add(const ParallelConfig& config, Bytes peak) {
  if (!wants(peak)) return;
  const SearchPartial::Miss miss{config, peak};
  const auto known = std::find_if(best_.begin(), best_.end(), [&config](const auto& other) { return same_degrees(other.config, config); });
  if (known != best_.end()) {
    if (!closer(miss, *known)) return;
    best_.erase(known);
  }
  // A set of degrees that is dropped here comes back when it has a smaller peak to offer.
  best_.insert(std::upper_bound(best_.begin(), best_.end(), miss, closer), miss);
  if (best_.size() > count_) best_.pop_back();
}

std::vector<NearMiss> describe_misses(const Scenario& scenario, const std::vector<SearchPartial::Miss>& misses) {
  std::vector<NearMiss> out;
  Pricer pricer(scenario);
  for (const auto& miss : misses) {
    NearMiss entry;
    entry.config = miss.config;
    entry.memory = pricer.memory(miss.config);
    entry.lacks = entry.memory.peak().reserved - entry.memory.budget;
    const auto part = largest_part(entry.memory.peak());
    entry.largest_part = part.name;
    entry.largest = part.bytes;
    entry.change = cheapest_change(scenario, pricer, miss.config);
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
