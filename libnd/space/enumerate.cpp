// SPDX-License-Identifier: Apache-2.0
#include "space/enumerate.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "space/dimensions.hpp"

namespace nd::space {

namespace {

/// Parts of a sequence under seq_1f1b when the run states none [assumed: the smallest split that Sun et al. 2024 train with].
constexpr int kUsualParts = 4;

/// The recursion over the dimension table; one value list per depth, reused.
class Enumerator {
 public:
  Enumerator(const SpaceContext& context, const SearchSpace& space, const StrategySink& sink, SpaceCounts& counts)
      : context_(context), space_(space), sink_(sink), counts_(counts) {}

  bool run(const ParallelConfig& start, const DimensionRange& range) {
    config_ = start;
    last_ = range.last;
    return descend(range.first);
  }

 private:
  const std::vector<std::int64_t>& values(std::size_t depth) {
    const auto& row = dimension_table()[depth];
    const auto& choice = space_.choices[depth];
    auto& list = lists_[depth];
    list.clear();
    if (choice.values.empty() || gives_way(row, choice)) row.domain(context_, config_, list);
    else list = choice.values;
    std::erase_if(list, [&choice](std::int64_t value) { return !choice.admits(value); });
    if (row.info.id == Dimension::schedule && config_.pp == 1) keep_first_possible(row, list);
    return list;
  }

  /// A pinned value gives way where it is impossible and the degrees before leave a single possibility, such as sequence
  /// parallelism without tp. dp and mb have one possibility always and stay.
  bool gives_way(const DimensionRow& row, const DimensionChoice& choice) {
    if (!choice.pinned || row.info.id == Dimension::dp || row.info.id == Dimension::micro_batch_num) return false;
    const std::int64_t before = row.get(config_);
    assign(row, choice.values.front());
    const bool impossible = row.check(context_, config_).has_value();
    assign(row, before);
    if (!impossible) return false;
    scratch_.clear();
    row.domain(context_, config_, scratch_);
    return scratch_.size() == 1;
  }

  /// One stage runs the same passes in the same order whatever the schedule.
  void keep_first_possible(const DimensionRow& row, std::vector<std::int64_t>& list) {
    const std::int64_t before = row.get(config_);
    for (const std::int64_t value : list) {
      assign(row, value);
      if (row.check(context_, config_)) continue;
      list.assign(1, value);
      break;
    }
    assign(row, before);
  }

  void assign(const DimensionRow& row, std::int64_t value) {
    row.set(config_, value);
    // Parts of a sequence exist in one schedule only; how many is no dimension but the run's.
    if (row.info.id == Dimension::schedule)
      config_.seq_split = config_.schedule == Schedule::seq_1f1b ? parts() : 1;
  }

  [[nodiscard]] int parts() const {
    const int stated = context_.scenario.run.strategy.seq_split;
    return stated > 1 ? stated : kUsualParts;
  }

  bool descend(std::size_t depth) {
    if (depth == last_) {
      ++counts_.enumerated;
      ++counts_.legal;
      return sink_(config_);
    }
    const auto& row = dimension_table()[depth];
    const std::int64_t before = row.get(config_);
    // By index: deeper levels use other lists, this one stays as it is.
    const auto& list = values(depth);
    for (std::size_t i = 0; i < list.size(); ++i) {
      assign(row, list[i]);
      if (const auto verdict = row.check(context_, config_)) {
        reject(*verdict);
      } else if (!descend(depth + 1)) {
        return false;
      }
    }
    assign(row, before);
    return true;
  }

  void reject(Rejection reason) {
    ++counts_.enumerated;
    const auto index = static_cast<std::size_t>(reason);
    ++counts_.rejected[index];
    if (!counts_.example[index]) counts_.example[index] = config_;
  }

  const SpaceContext& context_;
  const SearchSpace& space_;
  const StrategySink& sink_;
  SpaceCounts& counts_;
  ParallelConfig config_;
  std::size_t last_ = kDimensionCount;
  std::array<std::vector<std::int64_t>, kDimensionCount> lists_;
  std::vector<std::int64_t> scratch_;
};

}  // namespace

ParallelConfig first_strategy(const SpaceContext& context) {
  ParallelConfig config;
  config.cp_algorithm = context.scenario.run.strategy.cp_algorithm;
  return config;
}

bool enumerate_range(const SpaceContext& context, const SearchSpace& space, const ParallelConfig& start, const DimensionRange& range,
                     const StrategySink& sink, SpaceCounts& counts) {
  return Enumerator(context, space, sink, counts).run(start, range);
}

SpaceCounts enumerate(const SpaceContext& context, const SearchSpace& space, const StrategySink& sink) {
  SpaceCounts counts;
  enumerate_range(context, space, first_strategy(context), {}, sink, counts);
  return counts;
}

std::optional<Rejection> violation(const SpaceContext& context, const ParallelConfig& config) {
  for (const auto& row : dimension_table())
    if (const auto verdict = row.check(context, config)) return verdict;
  return std::nullopt;
}

}  // namespace nd::space
