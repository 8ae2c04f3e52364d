// SPDX-License-Identifier: Apache-2.0
// What every answer of the search must satisfy, over requests drawn with a fixed seed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <stop_token>
#include <tuple>

#include "nd/search.hpp"
#include "search/memory_parts.hpp"
#include "search/parallel.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

constexpr int kRequests = 12, kLargeRequests = 6;

using Sizes = std::initializer_list<std::int64_t>;
constexpr Sizes kSmall{1, 4, 6, 8, 12, 16}, kLarge{24, 64, 96, 128, 256, 512};

/// A request of random size; half of them MoE, budgets from tight to ample.
Scenario random_scenario(std::mt19937& random, Sizes devices = kSmall) {
  const auto pick = [&random](std::initializer_list<std::int64_t> values) {
    std::uniform_int_distribution<std::size_t> index(0, values.size() - 1);
    return *(values.begin() + index(random));
  };
  ResolvedModel model = pick({0, 1}) == 0 ? testing::llama_8b() : testing::small_moe();
  const std::int64_t ranks = pick(devices);
  Scenario out = testing::make_scenario(std::move(model), {.devices = ranks,
                                                           .global_batch = pick({16, 24, 48, 96}) * std::max<std::int64_t>(1, ranks / 16),
                                                           .seq_length = pick({512, 1024, 1536, 4096})});
  const bool small = out.model.has_experts();
  out.run.device_memory = Bytes{static_cast<double>(pick({1, 2, 4})) * (small ? 1.0 : 14.0) * kGiB};
  out.profile.can.style = pick({0, 1}) == 0 ? DataParallelStyle::megatron : DataParallelStyle::fsdp2;
  out.profile.can.uneven_layers = pick({0, 1}) == 1;
  return out;
}

template <class Check>
void for_requests(Check check) {
  std::mt19937 random(20240607);
  for (int i = 0; i < kRequests; ++i) {
    const Scenario scenario = random_scenario(random);
    INFO("request " << i << ": " << scenario.model.name << " on " << scenario.run.devices << ", batch " << scenario.run.global_batch_size
                    << ", sequence " << scenario.run.seq_length);
    check(scenario);
  }
}

SearchOptions options(int jobs, bool all) {
  SearchOptions out;
  out.jobs = jobs;
  out.keep_all = all;
  out.top = 30;
  return out;
}

bool same(const RankedCandidate& a, const RankedCandidate& b) {
  return a.config == b.config && a.step == b.step && a.peak == b.peak && a.fit == b.fit;
}

}  // namespace

TEST_CASE("Candidates keep the identities of a strategy and fit") {
  for_requests([](const Scenario& scenario) {
    const auto result = search_strategies(scenario, {}, options(1, false));
    double last = 0;
    for (const auto& candidate : result.candidates) {
      const auto& c = candidate.config;
      CHECK(std::int64_t{c.dp} * c.tp * c.pp * c.cp == scenario.run.devices);
      CHECK(std::int64_t{c.dp} * c.micro_batch_size * c.micro_batch_num == scenario.run.global_batch_size);
      CHECK_FALSE(first_violation(scenario, c));
      CHECK(candidate.memory.peak().reserved <= candidate.memory.budget);
      CHECK(candidate.memory.fit != Fit::no);
      CHECK(candidate.time.step.value >= last * (1 - 1e-9));  // closer ones are ties, which memory breaks
      last = candidate.time.step.value;
    }
    for (const auto& miss : result.near_misses) CHECK(miss.memory.peak().reserved > miss.memory.budget);
  });
}

TEST_CASE("Parts sum to their totals to 1e-9") {
  for_requests([](const Scenario& scenario) {
    for (const auto& candidate : search_strategies(scenario, {}, options(1, false)).candidates) {
      double step = 0;
      for (const auto part : candidate.time.exposed) step += part.value;
      CHECK(step == Approx(candidate.time.step.value).epsilon(1e-9));
      for (const auto& stage : candidate.memory.stages) {
        double bytes = 0;
        for (const auto& part : search::kMemoryParts) bytes += (stage.*part.bytes).value;
        CHECK(bytes == Approx(stage.allocated.value).epsilon(1e-9));
      }
      // tokens/s/device * devices * step = tokens of a step
      const double tokens = candidate.tokens_per_second * static_cast<double>(scenario.run.devices) * candidate.time.step.value;
      CHECK(tokens == Approx(static_cast<double>(scenario.run.global_batch_size * scenario.run.seq_length)).epsilon(1e-9));
    }
  });
}

TEST_CASE("Every combination has one fate") {
  for_requests([](const Scenario& scenario) {
    const auto stats = search_strategies(scenario, {}, options(1, true)).stats;
    const auto rejected = std::accumulate(stats.rejected.begin(), stats.rejected.end(), std::int64_t{0});
    CHECK(stats.enumerated == stats.priced + stats.pruned + rejected);
    CHECK(stats.legal == stats.priced + stats.pruned + stats.rejected[static_cast<std::size_t>(Rejection::out_of_memory)] +
                             stats.rejected[static_cast<std::size_t>(Rejection::equivalent)]);
    for (std::size_t i = 0; i < kRejectionCount; ++i) CHECK((stats.rejected[i] > 0) == stats.example[i].has_value());
  });
}

TEST_CASE("The number of workers changes nothing") {
  for_requests([](const Scenario& scenario) {
    const auto one = search_strategies(scenario, {}, options(1, true));
    for (const int jobs : {2, 3, 8}) {
      const auto many = search_strategies(scenario, {}, options(jobs, true));
      CHECK(std::equal(one.ranking.begin(), one.ranking.end(), many.ranking.begin(), many.ranking.end(), same));
      CHECK(one.stats.rejected == many.stats.rejected);
      REQUIRE(one.near_misses.size() == many.near_misses.size());
      for (std::size_t i = 0; i < one.near_misses.size(); ++i) CHECK(one.near_misses[i].config == many.near_misses[i].config);
    }
  });
}

TEST_CASE("The best of a bounded ranking are those of the whole one") {
  for_requests([](const Scenario& scenario) {
    const auto all = search_strategies(scenario, {}, options(2, true));
    const auto top = search_strategies(scenario, {}, options(2, false));
    REQUIRE(top.ranking.size() == std::min<std::size_t>(30, all.ranking.size()));
    CHECK(std::equal(top.ranking.begin(), top.ranking.end(), all.ranking.begin(), same));
    CHECK(all.exhaustive);
    CHECK(all.stats.pruned == 0);
    CHECK(all.stats.legal == top.stats.legal);
    CHECK(all.stats.enumerated == top.stats.enumerated);
  });
}

TEST_CASE("Up to 512 ranks: pruned is exhaustive, merged is whole, and neither workers nor backend change a byte") {
  std::mt19937 random(512);
  for (int i = 0; i < kLargeRequests; ++i) {
    const Scenario scenario = random_scenario(random, kLarge);
    INFO("request " << i << ": " << scenario.model.name << " on " << scenario.run.devices << ", batch " << scenario.run.global_batch_size);
    const auto all = search_strategies(scenario, {}, options(2, true));
    const auto best = search_strategies(scenario, {}, options(1, false));
    REQUIRE(best.ranking.size() == std::min<std::size_t>(30, all.ranking.size()));
    CHECK(std::equal(best.ranking.begin(), best.ranking.end(), all.ranking.begin(), same));
    for (const auto backend : {Backend::threads, Backend::tbb}) {
      for (const int jobs : {1, 2, 3, 8}) {
        auto again = options(jobs, false);
        again.backend = backend;
        const auto result = search_strategies(scenario, {}, again);
        CHECK(result.ranking == best.ranking);
        CHECK(result.stats.pruned == best.stats.pruned);
        CHECK(result.stats.rejected == best.stats.rejected);
        CHECK(result.stats.example == best.stats.example);
      }
    }
    std::vector<SearchPartial> parts;
    for (const std::int64_t index : {1, 2, 0}) {
      auto part = options(1, false);
      part.shard = {index, 3};
      parts.push_back(search_shard(scenario, {}, part));
    }
    const auto merged = merge_shards(scenario, {}, options(1, false), parts);
    REQUIRE(merged);
    CHECK(merged->ranking == best.ranking);
    CHECK(merged->stats.rejected == best.stats.rejected);
    for (const auto& candidate : best.candidates) {
      const auto fresh = price_strategy(search_scenario(scenario, {}, {}), candidate.config);
      CHECK(fresh.time.step.value == Approx(candidate.time.step.value).epsilon(1e-12));
      CHECK(fresh.memory.peak().reserved.value == Approx(candidate.memory.peak().reserved.value).epsilon(1e-12));
    }
  }
}

TEST_CASE("What is pruned does not depend on the workers") {
  for_requests([](const Scenario& scenario) {
    const auto one = search_strategies(scenario, {}, options(1, false));
    for (const int jobs : {2, 3, 8}) {
      const auto many = search_strategies(scenario, {}, options(jobs, false));
      CHECK(many.stats.pruned == one.stats.pruned);
      CHECK(many.stats.rejected == one.stats.rejected);
      CHECK(many.stats.example == one.stats.example);
      CHECK(many.ranking == one.ranking);
    }
  });
}

/// Every layer its own recompute mode.
SearchSpace planned_space() {
  SearchSpace space;
  space.of(Dimension::recompute).values = {static_cast<std::int64_t>(Recompute::per_layer)};
  return space;
}

TEST_CASE("A search with plans: workers change nothing, pruned is exhaustive, kept factors are fresh ones, uniform modes that fit still do") {
  for_requests([](const Scenario& scenario) {
    const auto space = planned_space();
    const auto all = search_strategies(scenario, space, options(2, true));
    const auto one = search_strategies(scenario, space, options(1, false));
    REQUIRE(one.ranking.size() == std::min<std::size_t>(30, all.ranking.size()));
    CHECK(std::equal(one.ranking.begin(), one.ranking.end(), all.ranking.begin(), same));
    for (const int jobs : {2, 3, 8}) {
      const auto many = search_strategies(scenario, space, options(jobs, false));
      CHECK(many.stats.pruned == one.stats.pruned);
      CHECK(many.stats.rejected == one.stats.rejected);
      CHECK(many.stats.example == one.stats.example);
      CHECK(many.ranking == one.ranking);
    }
    const Scenario priced = search_scenario(scenario, space, {});
    for (const auto& candidate : one.candidates) {
      const auto fresh = price_strategy(priced, candidate.config);
      CHECK(fresh.time.step.value == Approx(candidate.time.step.value).epsilon(1e-12));
      CHECK(fresh.memory.peak().reserved.value == Approx(candidate.memory.peak().reserved.value).epsilon(1e-12));
      CHECK(candidate.plan);
    }
    std::set<ParallelConfig> fitting;
    for (const auto& candidate : all.ranking) fitting.insert(candidate.config);
    if (all.stats.rejected[static_cast<std::size_t>(Rejection::equivalent)] > 0) return;  // another one stands for it
    for (auto candidate : search_strategies(scenario, {}, options(2, true)).ranking) {
      candidate.config.recompute = Recompute::per_layer;
      CHECK(fitting.count(candidate.config) == 1);
    }
  });
}

TEST_CASE("No two ranked candidates of a pipeline cost the same") {
  for_requests([](const Scenario& scenario) {
    std::set<std::tuple<ParallelConfig, double, double>> seen;
    for (const auto& candidate : search_strategies(scenario, {}, options(1, true)).ranking) {
      ParallelConfig pipeline = candidate.config;
      pipeline.zero = ZeroLevel::none;
      pipeline.op = 1;
      pipeline.recompute = Recompute::off;
      CHECK(seen.insert({pipeline, candidate.step.value, candidate.peak.value}).second);
    }
  });
}

TEST_CASE("Shards merge to the unsharded search") {
  for_requests([](const Scenario& scenario) {
    for (const bool all : {false, true}) {
      const auto whole = search_strategies(scenario, {}, options(2, all));
      std::vector<SearchPartial> parts;
      for (const std::int64_t index : {2, 0, 1}) {
        auto part = options(2, all);
        part.shard = {index, 3};
        parts.push_back(search_shard(scenario, {}, part));
      }
      const auto merged = merge_shards(scenario, {}, options(1, all), parts);
      REQUIRE(merged);
      CHECK(merged->ranking == whole.ranking);
      CHECK(merged->stats.enumerated == whole.stats.enumerated);
      CHECK(merged->stats.pruned == whole.stats.pruned);
      CHECK(merged->stats.rejected == whole.stats.rejected);
      CHECK(merged->stats.example == whole.stats.example);
      REQUIRE(merged->near_misses.size() == whole.near_misses.size());
      for (std::size_t i = 0; i < whole.near_misses.size(); ++i) CHECK(merged->near_misses[i].config == whole.near_misses[i].config);
      CHECK_FALSE(merge_shards(scenario, {}, options(1, all), std::span(parts).first(2)));
      parts[0].shard.index = 1;
      CHECK_FALSE(merge_shards(scenario, {}, options(1, all), parts));
    }
  });
}

TEST_CASE("The streamed ranking is the whole one") {
  for_requests([](const Scenario& scenario) {
    const auto all = search_strategies(scenario, {}, options(2, true));
    auto streaming = options(2, false);
    std::vector<RankedCandidate> streamed;
    streaming.on_ranked = [&streamed](const RankedCandidate& candidate) { streamed.push_back(candidate); };
    const auto result = search_strategies(scenario, {}, streaming);
    CHECK(streamed == all.ranking);
    CHECK(result.ranking.size() == std::min<std::size_t>(30, all.ranking.size()));
  });
}

TEST_CASE("A search that is stopped at once is marked and empty") {
  std::mt19937 random(3);
  const Scenario scenario = random_scenario(random);
  std::stop_source source;
  source.request_stop();
  auto stopped = options(2, false);
  stopped.stop = source.get_token();
  const auto result = search_strategies(scenario, {}, stopped);
  CHECK(result.end == SearchEnd::stopped);
  CHECK(result.ranking.empty());
  CHECK(result.stats.enumerated == std::accumulate(result.stats.rejected.begin(), result.stats.rejected.end(), result.stats.priced + result.stats.pruned));
}

TEST_CASE("Pricing with factors kept from other candidates is pricing afresh") {
  for_requests([](const Scenario& scenario) {
    const auto result = search_strategies(scenario, {}, options(1, false));
    for (const auto& candidate : result.candidates) {
      const auto fresh = price_strategy(search_scenario(scenario, {}, {}), candidate.config);
      CHECK(fresh.time.step.value == Approx(candidate.time.step.value).epsilon(1e-12));
      CHECK(fresh.memory.peak().reserved.value == Approx(candidate.memory.peak().reserved.value).epsilon(1e-12));
    }
  });
}

TEST_CASE("A larger budget never loses a candidate") {
  for_requests([](const Scenario& scenario) {
    auto small = options(1, true), large = options(1, true);
    small.memory_limit = Bytes{scenario.run.device_memory.value};
    large.memory_limit = Bytes{scenario.run.device_memory.value * 1.5};
    std::set<ParallelConfig> fitting;
    for (const auto& candidate : search_strategies(scenario, {}, large).ranking) fitting.insert(candidate.config);
    for (const auto& candidate : search_strategies(scenario, {}, small).ranking) CHECK(fitting.count(candidate.config) == 1);
  });
}

TEST_CASE("A list of values restricts the ranking to itself and changes no price") {
  for_requests([](const Scenario& scenario) {
    const auto space = with_setting({}, "tp=1,2", {});
    REQUIRE(space);
    const auto all = search_strategies(scenario, {}, options(1, true));
    const auto some = search_strategies(scenario, *space, options(1, true));
    std::vector<RankedCandidate> expected;
    std::copy_if(all.ranking.begin(), all.ranking.end(), std::back_inserter(expected), [](const RankedCandidate& c) { return c.config.tp <= 2; });
    CHECK(std::equal(expected.begin(), expected.end(), some.ranking.begin(), some.ranking.end(), same));
  });
}

TEST_CASE("A reserve lowers the budget, and one of everything leaves nothing that fits") {
  std::mt19937 random(3);
  const Scenario scenario = random_scenario(random);
  auto reserved = options(1, false);
  reserved.memory_limit = Bytes{8 * kGiB};
  reserved.memory_reserve = Bytes{3 * kGiB};
  CHECK(to_gib(search_strategies(scenario, {}, reserved).budget) == Approx(5.0));
  reserved.memory_reserve = Bytes{8 * kGiB};
  const auto nothing = search_strategies(scenario, {}, reserved);
  CHECK(nothing.ranking.empty());
  CHECK_FALSE(nothing.near_misses.empty());
}

}  // namespace nd
