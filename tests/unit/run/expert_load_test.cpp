// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <numeric>

#include "nd/run_spec.hpp"

namespace {

nd::ResolvedModel experts(std::int64_t count) {
  nd::ResolvedModel model;
  model.hidden_size = 1024;
  model.vocab_size = 1000;
  model.kinds.resize(1);
  model.kinds[0].ffn.kind = nd::FfnKind::moe;
  model.kinds[0].ffn.experts = count;
  model.layer_kind.assign(2, 0);
  return model;
}

nd::ExpertLoad load_of(const std::string& text) {
  const auto load = nd::parse_expert_load(text, {});
  REQUIRE(load);
  return *load;
}

nd::ResolvedRun run_with(const std::string& load, std::int64_t count) {
  nd::RunSpec spec;
  spec.expert_load = load_of(load);
  const auto run = nd::resolve_run(spec, experts(count), {});
  REQUIRE(run);
  return *run;
}

}  // namespace

TEST_CASE("tokens by expert: uniform, Zipf or a measured list", "[run]") {
  CHECK(load_of("uniform").kind == nd::ExpertLoad::Kind::uniform);
  CHECK(load_of("zipf:1.5").exponent == 1.5);
  CHECK(load_of("4,3, 2 1").shares == std::vector<double>{4, 3, 2, 1});
  CHECK(load_of("4\n3\r\n2\n1\n").shares == std::vector<double>{4, 3, 2, 1});
  for (const char* bad : {"", " ", "zipf", "zipf:", "zipf:-1", "zipf:17", "zipf:x", "zipf:nan", "even", "1,2,x", "1,-2", "0,0", "inf,1"}) {
    CAPTURE(bad);
    CHECK_FALSE(nd::parse_expert_load(bad, {}));
  }
}

TEST_CASE("the load of the busiest rank follows from the experts it holds", "[run]") {
  const auto zipf = run_with("zipf:1", 4);  // 1, 1/2, 1/3, 1/4 of 25/12
  CHECK(zipf.expert_load[0] == Approx(12.0 / 25));
  CHECK(std::accumulate(zipf.expert_load.begin(), zipf.expert_load.end(), 0.0) == Approx(1));
  CHECK(nd::busiest_rank_load(zipf, 4, 4) == Approx(4 * 12.0 / 25));
  CHECK(nd::busiest_rank_load(zipf, 4, 2) == Approx(2 * 18.0 / 25));  // the first two
  CHECK(nd::busiest_rank_load(zipf, 4, 1) == 1);                      // all on one rank: nothing is unbalanced
  CHECK(nd::busiest_rank_load(run_with("uniform", 64), 64, 16) == Approx(1));
  CHECK(nd::busiest_rank_load(run_with("1,1,1,5", 4), 4, 4) == Approx(4 * 5.0 / 8));

  nd::RunSpec imbalance;
  imbalance.expert_imbalance = 1.3;
  const auto plain = nd::resolve_run(imbalance, experts(4), {});
  REQUIRE(plain);
  CHECK(nd::busiest_rank_load(*plain, 4, 4) == 1.3);  // no distribution: the factor
}

TEST_CASE("a list for another number of experts, or for none, is refused", "[run]") {
  nd::RunSpec spec;
  spec.expert_load = load_of("1,2,3");
  const auto run = nd::resolve_run(spec, experts(4), {});
  REQUIRE_FALSE(run);
  CHECK(to_text(run.error().diagnostics.front()) == "error: expert_load: 3 shares for 4 experts (one number per expert of a layer)");
  auto dense = experts(4);
  dense.kinds[0].ffn = {};
  REQUIRE_FALSE(nd::resolve_run(spec, dense, {}));
  spec.expert_load = {};
  spec.expert_keep_limit = 0;
  REQUIRE_FALSE(nd::resolve_run(spec, experts(4), {}));
}
