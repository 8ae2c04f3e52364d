// SPDX-License-Identifier: Apache-2.0
#include "space/enumerate.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "space/dimensions.hpp"

namespace nd::space {

namespace {

/// The recursion over the dimension table; one value list per depth, reused.
class Enumerator {
 public:
  Enumerator(const SpaceContext& context, const SearchSpace& space, const StrategySink& sink)
      : context_(context), space_(space), sink_(sink) {
    config_.cp_algorithm = context.scenario.run.strategy.cp_algorithm;
  }

  SpaceCounts run() {
    descend(0);
    return counts_;
  }

 private:
  const std::vector<std::int64_t>& values(std::size_t depth) {
    const auto& row = dimension_table()[depth];
    const auto& choice = space_.choices[depth];
    auto& list = lists_[depth];
    list.clear();
    if (choice.values.empty()) {
      row.domain(context_, config_, list);
    } else {
      // A pinned value gives way where the degrees before leave a single possibility. dp and mb are single always and stay.
      if (choice.pinned && row.info.id != Dimension::dp && row.info.id != Dimension::micro_batch_num) {
        row.domain(context_, config_, list);
        if (list.size() == 1) return list;
        list.clear();
      }
      list = choice.values;
    }
    std::erase_if(list, [&choice](std::int64_t value) { return !choice.admits(value); });
    return list;
  }

  bool descend(std::size_t depth) {
    if (depth == kDimensionCount) {
      ++counts_.enumerated;
      ++counts_.legal;
      return sink_(config_);
    }
    const auto& row = dimension_table()[depth];
    const std::int64_t before = row.get(config_);
    // By index: deeper levels use other lists, this one stays as it is.
    const auto& list = values(depth);
    for (std::size_t i = 0; i < list.size(); ++i) {
      row.set(config_, list[i]);
      if (const auto verdict = row.check(context_, config_)) {
        reject(*verdict);
      } else if (!descend(depth + 1)) {
        return false;
      }
    }
    row.set(config_, before);
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
  ParallelConfig config_;
  SpaceCounts counts_;
  std::array<std::vector<std::int64_t>, kDimensionCount> lists_;
};

}  // namespace

SpaceCounts enumerate(const SpaceContext& context, const SearchSpace& space, const StrategySink& sink) {
  return Enumerator(context, space, sink).run();
}

std::optional<Rejection> violation(const SpaceContext& context, const ParallelConfig& config) {
  for (const auto& row : dimension_table())
    if (const auto verdict = row.check(context, config)) return verdict;
  return std::nullopt;
}

}  // namespace nd::space
