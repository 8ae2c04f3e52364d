// SPDX-License-Identifier: Apache-2.0
#include "nd/search.hpp"

#include <algorithm>

#include "memory/fit_test.hpp"
#include "search/space_search.hpp"

namespace nd {

Scenario search_scenario(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options) {
  Scenario out = scenario;
  if (options.memory_limit) out.run.device_memory = *options.memory_limit;
  // The lists name the layers of the stated strategy; a search over modes gives every layer the candidate's mode.
  if (!space.of(Dimension::recompute).pinned) {
    out.run.full_recompute_layers.clear();
    out.run.selective_recompute_layers.clear();
  }
  // A reserve of the whole budget leaves one byte: nothing fits, while 0 would mean "not stated".
  if (options.memory_reserve.value > 0)
    out.run.device_memory = std::max(memory::memory_budget(out) - options.memory_reserve, Bytes{1});
  return out;
}

SearchPartial search_shard(const Scenario& scenario, const SearchSpace& space, const SearchOptions& options) {
  const Scenario priced = search_scenario(scenario, space, options);
  return search::SpaceSearch(priced, options).run(space);
}

}  // namespace nd
