// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "layout/layout.hpp"

namespace {

/// Nodes of 8, super-nodes of 64, then unbounded; Megatron's rank order.
nd::Scenario scenario() {
  nd::Scenario s;
  s.cluster.device.levels.resize(3);
  s.cluster.device.levels[0].devices = 8;
  s.cluster.device.levels[1].devices = 64;
  s.cluster.device.levels[2].devices = 0;
  s.profile.can.rank_order = "tp-cp-dp-pp";
  return s;
}

using Inside = std::vector<std::int64_t>;

/// The same by laying out every rank: the group of rank 0, counted per unit.
std::int64_t counted_inside(std::int64_t ranks, std::int64_t stride, std::int64_t unit) {
  std::int64_t inside = 0;
  for (std::int64_t i = 0; i < ranks; ++i)
    if (i * stride / unit == 0) ++inside;
  return inside;
}

}  // namespace

TEST_CASE("tensor parallel ranks are neighbours, data parallel ranks lie tp * cp apart", "[placement]") {
  nd::ParallelConfig config{.dp = 16, .tp = 4, .pp = 2, .cp = 2};
  const auto tp = nd::layout::place_group(scenario(), config, nd::GroupKind::tp);
  CHECK(tp.stride == 1);
  CHECK(tp.inside == Inside{4, 4, 4});
  const auto cp = nd::layout::place_group(scenario(), config, nd::GroupKind::cp);
  CHECK(cp.stride == 4);
  CHECK(cp.inside == Inside{2, 2, 2});
  const auto dp = nd::layout::place_group(scenario(), config, nd::GroupKind::dp);  // 32 ranks, 4 apart: 2 per node, 16 per super-node
  CHECK(dp.ranks == 32);
  CHECK(dp.inside == Inside{2, 16, 32});
  const auto pp = nd::layout::place_group(scenario(), config, nd::GroupKind::pp);
  CHECK(pp.stride == 128);
  CHECK(pp.inside == Inside{1, 1, 2});
}

TEST_CASE("expert groups are taken out of the ranks of a stage", "[placement]") {
  nd::ParallelConfig config{.dp = 16, .tp = 2, .pp = 2, .ep = 8};
  const auto ep = nd::layout::place_group(scenario(), config, nd::GroupKind::ep);
  CHECK(ep.ranks == 8);
  CHECK(ep.inside == Inside{8, 8, 8});
  const auto replicas = nd::layout::place_group(scenario(), config, nd::GroupKind::expert_dp);
  CHECK(replicas.ranks == 4);
  CHECK(replicas.stride == 8);
  CHECK(replicas.inside == Inside{1, 4, 4});
}

TEST_CASE("placement equals a count over all ranks", "[placement]") {
  for (int tp : {1, 2, 4, 8})
    for (int dp : {1, 2, 8, 32}) {
      const auto group = nd::layout::place_group(scenario(), nd::ParallelConfig{.dp = dp, .tp = tp}, nd::GroupKind::dp);
      CHECK(group.inside[0] == counted_inside(dp, tp, 8));
      CHECK(group.inside[1] == counted_inside(dp, tp, 64));
      CHECK(group.inside[2] == dp);
    }
}
