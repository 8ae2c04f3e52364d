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
    if (row.info.id == Dimension::schedule && config_.pp == 1) keep_plain(row, list);
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

  /// One stage runs micro-batch after micro-batch whatever the schedule is called: all that are possible are one.
  void keep_plain(const DimensionRow& row, std::vector<std::int64_t>& list) {
    const std::int64_t before = row.get(config_);
    const auto possible = [&](std::int64_t value) {
      assign(row, value);
      return !row.check(context_, config_);
    };
    const auto found = std::find_if(list.begin(), list.end(), possible);
    if (found != list.end()) {
      const std::int64_t first = *found, plain = static_cast<std::int64_t>(Schedule::one_f_one_b);
      list.assign(1, possible(plain) ? plain : first);
    }
    assign(row, before);
  }

  void assign(const DimensionRow& row, std::int64_t value) {
    row.set(config_, value);
    // Parts of a sequence and groups of micro-batches exist in one schedule each; how many is no dimension but the run's.
    if (row.info.id != Dimension::schedule) return;
    config_.seq_split = config_.schedule == Schedule::seq_1f1b ? parts() : 1;
    config_.micro_batch_group = config_.schedule == Schedule::interleaved ? group() : 0;
  }

  /// The run's own where it can be, else pp, which 0 stands for.
  [[nodiscard]] int group() const {
    const int stated = context_.scenario.run.strategy.micro_batch_group;
    return stated >= config_.pp && stated <= config_.micro_batch_num && stated != config_.pp ? stated : 0;
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
    if (list.empty()) keep_furthest(std::nullopt, depth);
    for (std::size_t i = 0; i < list.size(); ++i) {
      assign(row, list[i]);
      if (const auto verdict = row.check(context_, config_)) {
        reject(*verdict, depth);
      } else if (!descend(depth + 1)) {
        return false;
      }
    }
    assign(row, before);
    return true;
  }

  void reject(Rejection reason, std::size_t depth) {
    ++counts_.enumerated;
    keep_furthest(reason, depth);
    const auto index = static_cast<std::size_t>(reason);
    ++counts_.rejected[index];
    if (!counts_.example[index]) counts_.example[index] = config_;
  }

  /// Of two ends at the same dimension: a number of devices that does not come out, or a shape that the schedule does not have,
  /// may be the doing of a free dimension's value; the other reason holds although those came out.
  static int weight(std::optional<Rejection> reason) {
    if (!reason) return 1;
    return *reason == Rejection::devices_mismatch || *reason == Rejection::schedule_unsupported ? 0 : 2;
  }

  void keep_furthest(std::optional<Rejection> reason, std::size_t depth) {
    auto& so_far = counts_.furthest;
    if (so_far && (depth < so_far->depth || (depth == so_far->depth && weight(reason) <= weight(so_far->reason)))) return;
    so_far = Obstacle{depth, reason, config_};
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
