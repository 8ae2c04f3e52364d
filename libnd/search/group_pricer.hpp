// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "search/pricer.hpp"
#include "search/tally.hpp"
#include "space/groups.hpp"

namespace nd::search {

/// Prices the members of a group one after the other. Thread-compatible: one per worker. The scenario must outlive it.
class GroupPricer {
 public:
  GroupPricer(const Scenario& scenario, const TallyRules& rules) : pricer_(scenario), tally_(rules) {}

  /// Seconds of a step that no member of the group is below.
  [[nodiscard]] double time_bound(const space::CandidateGroup& group) { return pricer_.time_bound(group.head); }

  /// Gives every member its fate. Members that fit but have a bound above `slowest` (a tie_value) are pruned.
  void price(const space::CandidateGroup& group, double slowest);

  [[nodiscard]] Tally& tally() { return tally_; }

 private:
  /// Whether a member with exactly this price was met before in the same pipeline.
  [[nodiscard]] bool met(Seconds step, Bytes peak);

  Pricer pricer_;
  Tally tally_;
  std::vector<std::pair<double, double>> prices_;  ///< of the members that fit, in the pipeline at hand
};

}  // namespace nd::search
