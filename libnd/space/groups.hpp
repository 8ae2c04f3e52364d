// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "space/enumerate.hpp"

namespace nd::space {

/// What the dimensions from vpp to the schedule can be.
struct PipelineChoice {
  int vpp = 1, seq_split = 1, micro_batch_group = 0;
  Schedule schedule = Schedule::one_f_one_b;
};
/// What the dimensions from the ZeRO level to recompute can be.
struct ShardChoice {
  int op = 1;
  ZeroLevel zero = ZeroLevel::none;
  Recompute recompute = Recompute::off;
};

/// The legal values of a run of dimensions, and what became of the others.
template <class Choice>
struct ChoiceList {
  std::vector<Choice> legal;
  SpaceCounts counts;
};

/// Strategies that share everything up to the number of micro-batches: every pipeline choice with every shard choice.
struct CandidateGroup {
  ParallelConfig head;  ///< the rest of its dimensions neutral
  const ChoiceList<PipelineChoice>* pipelines = nullptr;
  const ChoiceList<ShardChoice>* shards = nullptr;
  std::int64_t index = 0;  ///< in the order of enumeration

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(pipelines->legal.size()) * static_cast<std::int64_t>(shards->legal.size());
  }
  /// `config` (a copy of `head`) with a choice of each.
  static void choose(ParallelConfig& config, const PipelineChoice& choice) {
    config.vpp = choice.vpp;
    config.seq_split = choice.seq_split;
    config.micro_batch_group = choice.micro_batch_group;
    config.schedule = choice.schedule;
  }
  static void choose(ParallelConfig& config, const ShardChoice& choice) {
    config.zero = choice.zero;
    config.op = choice.op;
    config.recompute = choice.recompute;
  }
};

/// The legal set of enumerate() as groups: what follows the micro-batches depends on few of the degrees before (vpp and schedule
/// on pp and the micro-batches; ZeRO, op and recompute on pp and dp * cp), so those lists are made once each. Owns the lists that
/// the groups point to. Not thread-safe.
class GroupSpace {
 public:
  GroupSpace(const SpaceContext& context, SearchSpace space) : context_(context), space_(std::move(space)) {}

  /// Visits the groups that are not empty, in the order of enumerate(). Shard choices come by recompute first. False from the sink ends it. Counts as enumerate() does.
  SpaceCounts visit(const std::function<bool(const CandidateGroup&)>& sink);

 private:
  const ChoiceList<PipelineChoice>& pipelines(const ParallelConfig& head);
  const ChoiceList<ShardChoice>& shards(const ParallelConfig& head);

  const SpaceContext& context_;
  SearchSpace space_;
  std::map<std::pair<int, int>, ChoiceList<PipelineChoice>> pipelines_;
  std::map<std::pair<int, std::int64_t>, ChoiceList<ShardChoice>> shards_;
};

}  // namespace nd::space
