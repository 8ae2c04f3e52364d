// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "nd/search.hpp"

namespace nd::search {

class Pricer;

/// Collects the strategies that come closest to fitting, one per (dp, tp, pp, cp, ep): the smallest peak of each, and of those the
/// `count` smallest. Bounded memory; does not depend on the order of add().
class NearMisses {
 public:
  explicit NearMisses(std::size_t count) : count_(count) { best_.reserve(count + 1); }
  /// `peak` is above the budget.
  void add(const ParallelConfig& config, Bytes peak);
  /// Whether one with at least this peak can still be among the closest.
  [[nodiscard]] bool wants(Bytes peak) const { return count_ > 0 && (best_.size() < count_ || peak <= best_.back().peak); }
  /// Closest first.
  [[nodiscard]] const std::vector<SearchPartial::Miss>& closest() const { return best_; }

 private:
  std::size_t count_;
  std::vector<SearchPartial::Miss> best_;
};

/// What there is to say about them, in their order; scenario as the search priced it.
[[nodiscard]] std::vector<NearMiss> describe_misses(const Scenario& scenario, const std::vector<SearchPartial::Miss>& misses);

/// The largest part of a stage: name and bytes.
struct LargestPart {
  std::string_view name;
  Bytes bytes{};
};
[[nodiscard]] LargestPart largest_part(const StageMemory& stage);

/// The cheapest change with which `config` fits, in words; empty when none of those tried does. Tried in order of what they cost:
/// recompute, sequence parallelism, sharding, a smaller micro-batch, more tp / pp / cp / ep on the same devices, two of these at
/// once, more devices. `pricer` is of `scenario`.
[[nodiscard]] std::string cheapest_change(const Scenario& scenario, Pricer& pricer, const ParallelConfig& config);

}  // namespace nd::search
