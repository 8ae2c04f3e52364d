// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <vector>

#include "nd/search.hpp"

namespace nd::search {

/// Collects the strategies that come closest to fitting, one per set of degrees, in bounded memory.
class NearMisses {
 public:
  /// `peak` is above the budget.
  void add(const ParallelConfig& config, Bytes peak);
  /// The closest `count`, described; scenario as the search priced it.
  [[nodiscard]] std::vector<NearMiss> take(const Scenario& scenario, std::size_t count);

 private:
  using Key = std::array<int, 5>;
  struct Miss {
    ParallelConfig config;
    Bytes peak{};
  };
  std::map<Key, Miss> best_;
  std::map<Key, Miss>::iterator last_ = best_.end();
};

/// The largest part of a stage: name and bytes.
struct LargestPart {
  std::string_view name;
  Bytes bytes{};
};
[[nodiscard]] LargestPart largest_part(const StageMemory& stage);

/// The cheapest single change with which `config` fits, in words; empty when none of those tried does. Tried in order of what
/// they cost: recompute, sequence parallelism, sharding, a smaller micro-batch, more tp / pp / cp / ep, more devices.
[[nodiscard]] std::string cheapest_change(const Scenario& scenario, const ParallelConfig& config);

}  // namespace nd::search
