// SPDX-License-Identifier: Apache-2.0
#include "space/groups.hpp"

#include <algorithm>

namespace nd::space {

namespace {

constexpr auto kHead = DimensionRange{.first = 0, .last = static_cast<std::size_t>(Dimension::vpp)};
constexpr auto kPipeline = DimensionRange{.first = kHead.last, .last = static_cast<std::size_t>(Dimension::zero)};
constexpr auto kShard = DimensionRange{.first = kPipeline.last, .last = kDimensionCount};

PipelineChoice pipeline_choice(const ParallelConfig& config) {
  return {.vpp = config.vpp, .seq_split = config.seq_split, .micro_batch_group = config.micro_batch_group, .schedule = config.schedule};
}

/// Adds `times` the rejections of a list that `head` has in common.
void add_rejected(const SpaceCounts& list, std::int64_t times, const ParallelConfig& head, SpaceCounts& sum) {
  for (std::size_t i = 0; i < kRejectionCount; ++i) {
    if (list.rejected[i] == 0 || times == 0) continue;
    sum.rejected[i] += times * list.rejected[i];
    sum.enumerated += times * list.rejected[i];
    if (sum.example[i]) continue;
    ParallelConfig example = head;
    CandidateGroup::choose(example, pipeline_choice(*list.example[i]));
    CandidateGroup::choose(example, ShardChoice{list.example[i]->op, list.example[i]->zero, list.example[i]->recompute});
    sum.example[i] = example;
  }
}

}  // namespace

const ChoiceList<PipelineChoice>& GroupSpace::pipelines(const ParallelConfig& head) {
  const auto [found, fresh] = pipelines_.try_emplace(std::pair{head.pp, head.micro_batch_num});
  auto& list = found->second;
  if (!fresh) return list;
  const auto add = [&list](const ParallelConfig& config) {
    list.legal.push_back(pipeline_choice(config));
    return true;
  };
  enumerate_range(context_, space_, head, kPipeline, add, list.counts);
  return list;
}

const ChoiceList<ShardChoice>& GroupSpace::shards(const ParallelConfig& head) {
  const auto [found, fresh] = shards_.try_emplace(std::pair{head.pp, std::int64_t{head.dp} * head.cp});
  auto& list = found->second;
  if (!fresh) return list;
  const auto add = [&list](const ParallelConfig& config) {
    list.legal.push_back({config.op, config.zero, config.recompute});
    return true;
  };
  enumerate_range(context_, space_, head, kShard, add, list.counts);
  // Strategies that differ in the sharding only have their passes and activations in common.
  std::stable_sort(list.legal.begin(), list.legal.end(), [](const ShardChoice& a, const ShardChoice& b) { return a.recompute < b.recompute; });
  return list;
}

SpaceCounts GroupSpace::visit(const std::function<bool(const CandidateGroup&)>& sink) {
  SpaceCounts counts;
  std::int64_t index = 0;
  const auto group = [&](const ParallelConfig& head) {
    const CandidateGroup now{head, &pipelines(head), &shards(head), index};
    const std::int64_t size = now.size();
    // enumerate_range counted the head itself.
    counts.enumerated += size - 1;
    counts.legal += size - 1;
    add_rejected(now.pipelines->counts, 1, head, counts);
    add_rejected(now.shards->counts, static_cast<std::int64_t>(now.pipelines->legal.size()), head, counts);
    if (size == 0) return true;
    ++index;
    return sink(now);
  };
  enumerate_range(context_, space_, first_strategy(context_), kHead, group, counts);
  return counts;
}

}  // namespace nd::space
