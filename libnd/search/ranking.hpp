// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "nd/search.hpp"

namespace nd::search {

/// Figures that agree to 2^-30 (9.3e-10) have the same: the number with 30 bits of its mantissa, rounded. Being equal is
/// transitive, which a tolerance is not. Precondition: not negative.
[[nodiscard]] double tie_value(double figure);

/// The order of every ranking. Total, so that equal inputs rank equally. Memory: peak, step; else step, peak; then the dimensions
/// in use and the strategy itself.
class RankOrder {
 public:
  explicit RankOrder(Objective objective = Objective::time) : by_memory_(objective == Objective::memory) {}
  /// True when `a` ranks before `b`.
  [[nodiscard]] bool operator()(const RankedCandidate& a, const RankedCandidate& b) const;

 private:
  bool by_memory_;
};

/// Keeps the best `limit` of a stream in bounded memory (limit 0: all). The result does not depend on the order of add().
/// Allocates nothing once it is full.
class Ranking {
 public:
  Ranking(RankOrder order, std::size_t limit);
  void add(const RankedCandidate& candidate);
  [[nodiscard]] bool full() const { return limit_ > 0 && kept_.size() == limit_; }
  /// The last that is kept. Precondition: full().
  [[nodiscard]] const RankedCandidate& worst() const { return kept_.front(); }
  /// Best first. The ranking is empty afterwards.
  [[nodiscard]] std::vector<RankedCandidate> take();

 private:
  RankOrder order_;
  std::size_t limit_;
  std::vector<RankedCandidate> kept_;  ///< bounded: a heap with the worst in front
};

/// The best `limit` of several rankings of the same order (limit 0: all), each strategy once.
[[nodiscard]] std::vector<RankedCandidate> merge_rankings(RankOrder order, std::size_t limit, std::vector<std::vector<RankedCandidate>> parts);

/// The candidates to which no other is both at least as fast and at least as small. Does not depend on the order of add().
class ParetoFront {
 public:
  void add(const RankedCandidate& candidate);
  /// Fastest first.
  [[nodiscard]] const std::vector<RankedCandidate>& front() const { return front_; }

 private:
  std::vector<RankedCandidate> front_;  ///< step rises, peak falls
};

}  // namespace nd::search
