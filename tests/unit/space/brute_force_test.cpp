// SPDX-License-Identifier: Apache-2.0
// The legal set against a second statement of the rules: every number is tried for every degree, and one predicate decides.
// Nothing of the dimension table is used.
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "space/enumerate.hpp"
#include "space/groups.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

using testing::make_scenario;

bool divides(std::int64_t a, std::int64_t b) { return b % a == 0; }

/// What the documentation of the dimensions promises, for a model of one layer kind and ring context parallelism.
struct Rules {
  const Scenario& scenario;

  bool model_allows(const ParallelConfig& c) const {
    const auto& can = scenario.profile.can;
    const auto& kind = scenario.model.kinds.front();
    const bool kv = divides(c.tp, kind.attention.kv_heads) || (can.kv_head_replication && divides(kind.attention.kv_heads, c.tp));
    if (!divides(c.tp, kind.attention.heads) || !kv) return false;
    if (kind.ffn.kind == FfnKind::dense) return divides(c.tp, kind.ffn.width) && c.ep == 1 && c.etp == 1;
    return divides(c.ep, kind.ffn.experts) && divides(c.etp, kind.ffn.expert_width) &&
           divides(std::int64_t{c.ep} * c.etp, std::int64_t{c.dp} * c.cp * c.tp) && divides(c.etp, c.tp);
  }
  bool pipeline_allows(const ParallelConfig& c) const {
    const auto& can = scenario.profile.can;
    const auto layers = scenario.model.layers();
    const std::int64_t chunks = std::int64_t{c.pp} * c.vpp;
    if (can.uneven_layers ? chunks > layers : layers % chunks != 0) return false;
    if (c.vpp > 1 && layers % c.pp == 0 && layers % chunks != 0) return false;
    // Uneven stages: the next smaller number of chunks must have a larger largest chunk.
    const auto largest = [&](std::int64_t vpp) { return (layers + c.pp * vpp - 1) / (c.pp * vpp); };
    if (c.vpp > 1 && layers % c.pp != 0 && largest(c.vpp) == largest(c.vpp - 1)) return false;
    if (c.vpp > 1 && (c.pp == 1 || c.micro_batch_num % c.pp != 0)) return false;
    if (c.vpp > 1 && !can.interleaved) return false;
    return (c.schedule == Schedule::interleaved) == (c.vpp > 1) && c.schedule != Schedule::gpipe;
  }
  bool run_allows(const ParallelConfig& c) const {
    const auto& run = scenario.run;
    if (std::int64_t{c.dp} * c.tp * c.pp * c.cp != run.devices) return false;
    if (std::int64_t{c.dp} * c.micro_batch_size * c.micro_batch_num != run.global_batch_size) return false;
    if (c.cp > 1 && !divides(2 * c.cp, run.seq_length)) return false;
    if (c.sequence_parallel && (c.tp == 1 || !divides(std::int64_t{c.tp} * c.cp, run.seq_length))) return false;
    const bool moe_tp = scenario.model.has_experts() && c.tp > 1;
    const auto rule = scenario.profile.can.sequence_parallel_with_tp;
    if (rule == SequenceParallelRule::always && c.tp > 1 && !c.sequence_parallel) return false;  // the runs here state tp = 1
    return c.sequence_parallel || !moe_tp || rule != SequenceParallelRule::with_experts;
  }
  bool sharding_allows(const ParallelConfig& c) const {
    const auto style = scenario.profile.can.style;
    const int ranks = c.dp * c.cp;
    if (static_cast<int>(c.zero) > scenario.profile.can.max_zero) return false;
    if (c.zero == ZeroLevel::none) return c.op == 1;
    if (ranks == 1) return false;  // the same as none
    if (c.zero >= ZeroLevel::gradients && c.pp > 1 && style != DataParallelStyle::fsdp2 && style != DataParallelStyle::mindspore)
      return false;
    if (c.zero == ZeroLevel::optimizer && (style == DataParallelStyle::fsdp || style == DataParallelStyle::fsdp2)) return false;
    return style == DataParallelStyle::mindspore ? c.op > 1 && divides(c.op, ranks) : c.op == ranks;
  }
  bool allow(const ParallelConfig& c) const { return model_allows(c) && pipeline_allows(c) && run_allows(c) && sharding_allows(c); }
};

std::set<ParallelConfig> brute_force(const Scenario& scenario) {
  const Rules rules{scenario};
  const int n = static_cast<int>(scenario.run.devices);
  const int batch = static_cast<int>(scenario.run.global_batch_size);
  const int layers = static_cast<int>(scenario.model.layers());
  const bool moe = scenario.model.has_experts();
  std::set<ParallelConfig> out;
  ParallelConfig c;
  // Ranges wider than any rule allows; only products that miss the devices are left out early.
  for (c.tp = 1; c.tp <= n; ++c.tp)
    for (c.pp = 1; c.pp <= n; ++c.pp)
      for (c.cp = 1; c.cp <= n; ++c.cp)
        for (c.dp = 1; c.dp <= n; ++c.dp) {
          if (c.devices() != n) continue;
          for (c.ep = 1; c.ep <= (moe ? n : 2); ++c.ep)
            for (c.etp = 1; c.etp <= (moe ? n : 2); ++c.etp)
              for (c.micro_batch_size = 1; c.micro_batch_size <= batch; ++c.micro_batch_size)
                for (c.micro_batch_num = 1; c.micro_batch_num <= batch; ++c.micro_batch_num) {
                  if (c.global_batch() != batch) continue;
                  for (c.vpp = 1; c.vpp <= layers; ++c.vpp)
                    for (c.op = 1; c.op <= n; ++c.op)
                      for (int rest = 0; rest < 2 * 4 * 3 * 3; ++rest) {
                        c.sequence_parallel = rest % 2 != 0;
                        c.zero = static_cast<ZeroLevel>(rest / 2 % 4);
                        c.schedule = static_cast<Schedule>(rest / 8 % 3);
                        c.recompute = static_cast<Recompute>(rest / 24);
                        if (rules.allow(c)) out.insert(c);
                      }
                }
        }
  return out;
}

void compare(const Scenario& scenario) {
  const space::SpaceContext context(scenario);
  std::set<ParallelConfig> found;
  const auto counts = space::enumerate(context, SearchSpace{}, [&found](const ParallelConfig& c) {
    CHECK(found.insert(c).second);  // nothing twice
    return true;
  });
  CHECK(found == brute_force(scenario));
  CHECK(counts.legal == static_cast<std::int64_t>(found.size()));
  CHECK(counts.enumerated == std::accumulate(counts.rejected.begin(), counts.rejected.end(), counts.legal));
  for (const auto& config : found) CHECK_FALSE(first_violation(scenario, config));
  // The same set in groups, with the same counts.
  space::GroupSpace groups(context, SearchSpace{});
  std::set<ParallelConfig> grouped;
  const auto group_counts = groups.visit([&grouped](const space::CandidateGroup& group) {
    ParallelConfig config = group.head;
    for (const auto& pipeline : group.pipelines->legal) {
      space::CandidateGroup::choose(config, pipeline);
      for (const auto& shards : group.shards->legal) {
        space::CandidateGroup::choose(config, shards);
        CHECK(grouped.insert(config).second);
      }
    }
    return true;
  });
  CHECK(grouped == found);
  CHECK(group_counts.legal == counts.legal);
  CHECK(group_counts.enumerated == counts.enumerated);
  CHECK(group_counts.rejected == counts.rejected);
}

}  // namespace

TEST_CASE("The legal strategies of a dense model are those of the brute force") {
  for (const std::int64_t devices : {1, 2, 6, 8, 12}) {
    INFO(devices << " devices");
    compare(make_scenario(testing::small_dense(), {.devices = devices, .global_batch = 12, .seq_length = 48}));
  }
}

TEST_CASE("The legal strategies of a MoE model are those of the brute force") {
  for (const std::int64_t devices : {1, 4, 6, 12}) {
    INFO(devices << " devices");
    compare(make_scenario(testing::small_moe(), {.devices = devices, .global_batch = 8, .seq_length = 64}));
  }
}

TEST_CASE("Capabilities of the framework change the legal set as the brute force says") {
  auto scenario = make_scenario(testing::small_moe(), {.devices = 8, .global_batch = 16, .seq_length = 64});
  auto& can = scenario.profile.can;
  SECTION("uneven layers") { can.uneven_layers = true; }
  SECTION("no interleaving") { can.interleaved = false; }
  SECTION("KV heads not replicated") { can.kv_head_replication = false; }
  SECTION("ZeRO-1 at most") { can.max_zero = 1; }
  SECTION("FSDP2") { can.style = DataParallelStyle::fsdp2; }
  SECTION("FSDP") { can.style = DataParallelStyle::fsdp; }
  SECTION("DeepSpeed") { can.style = DataParallelStyle::deepspeed; }
  SECTION("sequence parallelism needed with experts") { can.sequence_parallel_with_tp = SequenceParallelRule::with_experts; }
  SECTION("sequence parallelism needed with tp") { can.sequence_parallel_with_tp = SequenceParallelRule::always; }
  compare(scenario);
}

TEST_CASE("Odd sequences and batches") {
  compare(make_scenario(testing::small_dense(), {.devices = 8, .global_batch = 6, .seq_length = 36}));
  compare(make_scenario(testing::small_dense(), {.devices = 8, .global_batch = 7, .seq_length = 33}));
}

}  // namespace nd
