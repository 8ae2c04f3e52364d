// SPDX-License-Identifier: Apache-2.0
// The path of a candidate allocates nothing once its factors are there: support/allocations.cpp counts.
#include <catch2/catch.hpp>

#include "search/group_pricer.hpp"
#include "support/allocations.hpp"
#include "support/scenarios.hpp"

namespace nd::search {
namespace {

/// Allocations of pricing every group a second time, and members priced.
struct Warm {
  std::int64_t allocations = 0, members = 0, fitting = 0;
};

Warm price_twice(const Scenario& scenario) {
  const space::SpaceContext context(scenario);
  const SearchSpace everything;
  space::GroupSpace groups(context, everything);
  std::vector<space::CandidateGroup> all;
  (void)groups.visit([&all](const space::CandidateGroup& group) {
    all.push_back(group);
    return true;
  });
  GroupPricer pricer(scenario, {.order = RankOrder{}, .keep = 20, .near_misses = 5, .pareto = false});
  const auto price_all = [&] {
    for (const auto& group : all) pricer.price(group, 1e300);
  };
  price_all();
  Warm out;
  const std::int64_t before = test::allocations();
  price_all();
  out.allocations = test::allocations() - before;
  for (const auto& group : all) out.members += group.size();
  out.fitting = pricer.tally().priced;
  return out;
}

}  // namespace

TEST_CASE("A warm search allocates nothing per candidate") {
  REQUIRE(test::allocations() > 0);  // the counter counts
  auto dense = testing::make_scenario(testing::llama_8b(), {.devices = 16, .global_batch = 48, .seq_length = 4096});
  auto moe = testing::make_scenario(testing::small_moe(), {.devices = 12, .global_batch = 24, .seq_length = 1024});
  moe.profile.can.style = DataParallelStyle::fsdp2;
  moe.profile.can.uneven_layers = true;
  for (const auto& scenario : {dense, moe}) {
    const Warm warm = price_twice(scenario);
    INFO(scenario.model.name << ": " << warm.members << " members, " << warm.fitting << " fits");
    CHECK(warm.members > 1000);
    CHECK(warm.fitting > 100);
    CHECK(warm.allocations == 0);
  }
}

}  // namespace nd::search
