// SPDX-License-Identifier: Apache-2.0
#include "perf/collectives/collective.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string_view>
#include <vector>

#include "unit/perf/fixtures.hpp"

namespace nd::perf {
namespace {

using namespace perf_test;
using enum CollectiveKind;

/// `ranks` ranks, `in_node` of them on each node, on machines of two tiers.
Placement two_tiers(std::int64_t ranks, std::int64_t in_node) {
  return make_placement({.ranks = ranks, .stride = 1, .inside = {in_node, ranks}});
}

double by_name(std::string_view name, const CollectiveRequest& request, const DeviceType& device) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms())
    if (algorithm.name == name && algorithm.applies(request, device.levels)) return algorithm.seconds(request, device.levels);
  return -1;
}

/// A100 without latencies: bandwidth terms only.
DeviceType dry(DeviceType device) {
  for (TopologyLevel& level : device.levels) level.latency = level.latency_per_rank = level.latency_per_doubling = {};
  return device;
}

constexpr double kGigabyte = 1e9;

}  // namespace

TEST_CASE("bytes on the wire are exact", "[perf][collectives]") {
  // S = 1024 bytes, 8 ranks: 2*1024*7/8 = 1792; 1024*7/8 = 896.
  CHECK(wire_bytes(all_reduce, 1024, 8) == 1792);
  CHECK(wire_bytes(all_gather, 1024, 8) == 896);
  CHECK(wire_bytes(reduce_scatter, 1024, 8) == 896);
  CHECK(wire_bytes(all_to_all, 1024, 8) == 896);
  CHECK(wire_bytes(send_receive, 1024, 8) == 1024);
  CHECK(wire_bytes(broadcast, 1024, 8) == 1024);
  for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter, all_to_all, send_receive, broadcast})
    CHECK(wire_bytes(kind, 1024, 1) == 0);
}

TEST_CASE("a ring in a node runs at the bus bandwidth after the latency", "[perf][collectives]") {
  // 1 GB over 8 ranks: 2*7/8 GB / (230 * 0.96 GB/s) = 7.926 ms, and 43 + 8*8 = 107 us.
  const CollectiveRequest request{.kind = all_reduce, .bytes = kGigabyte, .group = two_tiers(8, 8)};
  CHECK(collective_seconds(request, a100().levels) == Approx(1.75e9 / (230e9 * 0.96) + 107e-6));
}

TEST_CASE("ranks of a node share its NICs with the groups beside them", "[perf][collectives]") {
  const DeviceType device = dry(a100());
  const auto seconds = [&](std::int64_t in_node) {
    return by_name("ring", {.kind = all_gather, .bytes = kGigabyte, .group = two_tiers(16, in_node)}, device);
  };
  // One rank per node has one NIC of 25 * 0.85 GB/s, four have four; eight NICs still stay below the 220.8 GB/s in the node.
  CHECK(seconds(1) == Approx(0.9375e9 / 21.25e9));
  CHECK(seconds(4) == Approx(0.9375e9 / 85e9));
  CHECK(seconds(8) == Approx(0.9375e9 / 170e9));
  // With eight 50 GB/s NICs the node itself would be the limit.
  DeviceType fast = device;
  fast.levels[1].bandwidth = {50e9};
  CHECK(by_name("ring", {.kind = all_gather, .bytes = kGigabyte, .group = two_tiers(16, 8)}, fast) == Approx(0.9375e9 / 220.8e9));
}

TEST_CASE("a group in a full mesh owns n-1 of the N-1 links", "[perf][collectives]") {
  const DeviceType device = dry(ascend_a2());
  const auto bus = [&](std::int64_t ranks) {
    const double seconds = collective_seconds({.kind = all_gather, .bytes = kGigabyte, .group = two_tiers(ranks, ranks)}, device.levels);
    return wire_bytes(all_gather, kGigabyte, ranks) / seconds;
  };
  CHECK(bus(8) == Approx(129e9 * 0.91));
  CHECK(bus(2) == Approx(129e9 * 0.91 / 7));      // measured: 19 GB/s of 130 with 2 ranks
  CHECK(bus(4) == Approx(129e9 * 0.91 * 3 / 7));  // measured: 48 GB/s with 4 ranks
  // Two neighbours of a larger group still share one link.
  CHECK(collective_seconds({.kind = send_receive, .bytes = kGigabyte, .group = two_tiers(8, 8)}, device.levels) ==
        Approx(kGigabyte / (129e9 * 0.91 / 7)));
}

TEST_CASE("tiers: exchanging shards is never worse than one flat ring", "[perf][collectives]") {
  for (const DeviceType& device : {a100(), h100(), ascend_a2()}) {
    for (const std::int64_t in_node : {1, 2, 4, 8}) {
      for (const std::int64_t nodes : {2, 4, 64}) {
        for (const double bytes : {1e4, 1e6, 1e9}) {
          for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter}) {
            const CollectiveRequest request{.kind = kind, .bytes = bytes, .group = two_tiers(in_node * nodes, in_node)};
            CHECK(collective_seconds(request, device.levels) <= by_name("ring", request, device));
          }
        }
      }
    }
  }
  // Where the tiers differ much it is strictly better: in 2 nodes with 1.25 GB/s NICs, 8 ranks each, 1 GB gathered.
  // Flat: 15/16 GB / (8 * 1.25 GB/s) = 93.75 ms. By tiers: 1/8 GB * 1/2 / 1.25 GB/s = 50 ms and 7/8 GB / 220.8 GB/s = 4 ms.
  DeviceType slow = dry(a100());
  slow.levels[1].bandwidth = {1.25e9};
  slow.levels[1].efficiency = 1;
  const CollectiveRequest request{.kind = all_gather, .bytes = kGigabyte, .group = two_tiers(16, 8)};
  CHECK(by_name("ring", request, slow) == Approx(93.75e-3));
  CHECK(collective_seconds(request, slow.levels) == Approx(50e-3 + 0.875e9 / 220.8e9));
}

TEST_CASE("small all-reduces take the tree, large ones the ring", "[perf][collectives]") {
  const DeviceType device = a100();
  const auto winner = [&](double bytes) {
    const CollectiveRequest request{.kind = all_reduce, .bytes = bytes, .group = two_tiers(8, 8)};
    return by_name("tree", request, device) < by_name("ring", request, device);
  };
  CHECK(winner(1e5));
  CHECK_FALSE(winner(1e9));
}

TEST_CASE("all-to-all: the tiers work side by side", "[perf][collectives]") {
  const DeviceType device = dry(a100());
  const auto seconds = [&](std::int64_t in_node, std::int64_t copies) {
    return collective_seconds({.kind = all_to_all, .bytes = kGigabyte, .group = two_tiers(32, in_node), .copies_per_token = copies},
                              device.levels);
  };
  // 8 of 32 in the node: 24/32 leave it through one NIC each; the 7/32 inside are hidden behind that.
  CHECK(seconds(8, 0) == Approx(0.75e9 / (25e9 * 0.85 * 0.83)));
  // A token with 8 experts on 4 nodes reaches 4*(1 - 0.75^8) = 3.6 nodes, 3/4 of them remote: 2.7 of 8 copies = 0.3374.
  const double remote = 4 * (1 - std::pow(0.75, 8)) * 0.75 / 8;
  CHECK(seconds(8, 8) == Approx(remote * 1e9 / (25e9 * 0.85)));  // messages of its own kernels
  // In one node nothing crosses: 7/8 at the bus rate.
  CHECK(collective_seconds({.kind = all_to_all, .bytes = kGigabyte, .group = two_tiers(8, 8), .copies_per_token = 8}, device.levels) ==
        Approx(0.875e9 / (230e9 * 0.96 * 0.83)));
}

TEST_CASE("a super-node is a tier like any other", "[perf][collectives]") {
  const DeviceType device = dry(nvl72());
  const Placement rack = make_placement({.ranks = 64, .stride = 1, .inside = {4, 64, 64}});
  const Placement racks = make_placement({.ranks = 128, .stride = 1, .inside = {4, 64, 128}});
  CHECK(by_name("ring", {.kind = all_gather, .bytes = kGigabyte, .group = rack}, device) == Approx(63.0 / 64 * 1e9 / 700e9));
  // Two racks: 64 NICs of 50 * 0.71 GB/s would carry more than the rack's own 700 GB/s.
  CHECK(by_name("ring", {.kind = all_gather, .bytes = kGigabyte, .group = racks}, device) == Approx(127.0 / 128 * 1e9 / 700e9));
}

TEST_CASE("a flat gather goes through each rank's own NIC", "[perf][collectives]") {
  const DeviceType device = dry(a100());
  const CollectiveRequest request{.kind = all_gather, .bytes = kGigabyte, .group = two_tiers(16, 8), .flat = true};
  CHECK(collective_seconds(request, device.levels) == Approx(0.9375e9 / 21.25e9));
}

TEST_CASE("collectives: more bytes never faster, faster links never slower, nothing is free", "[perf][collectives]") {
  DeviceType faster = a100();
  for (TopologyLevel& level : faster.levels) {
    level.bandwidth *= 2.0;
    level.bus *= 2.0;
  }
  for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter, all_to_all, send_receive, broadcast}) {
    for (const std::int64_t in_node : {1, 8}) {
      double before = 0;
      for (const double bytes : {1.0, 1e5, 1e6, 1e8, 1e10}) {
        const CollectiveRequest request{.kind = kind, .bytes = bytes, .group = two_tiers(32, in_node)};
        const double seconds = collective_seconds(request, a100().levels);
        CHECK(seconds > before);
        CHECK(collective_seconds(request, faster.levels) < seconds);
        before = seconds;
      }
    }
  }
  CHECK(collective_seconds({.kind = all_reduce, .bytes = 1e9, .group = two_tiers(1, 1)}, a100().levels) == 0);
  CHECK(collective_seconds({.kind = all_reduce, .bytes = 0, .group = two_tiers(8, 8)}, a100().levels) == 0);
}

TEST_CASE("shards and their copies split a group", "[perf][collectives]") {
  const Placement group = two_tiers(32, 8);
  const Placement inner = inner_part(group, 8);
  CHECK(inner.ranks == 8);
  CHECK(inner.inside[0] == 8);
  const Placement outer = outer_part(group, 8);
  CHECK(outer.ranks == 4);
  CHECK(outer.inside[0] == 1);
  CHECK(outer.inside[1] == 4);
}

}  // namespace nd::perf
