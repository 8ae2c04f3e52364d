// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "nd/search.hpp"

namespace nd::search {

/// The order of every ranking: step time, then peak memory, then the strategy itself. Total, so that equal inputs rank equally.
[[nodiscard]] bool better(const RankedCandidate& a, const RankedCandidate& b);

/// Keeps the best `limit` of a stream in bounded memory (limit 0: all). The result does not depend on the order of add().
class Ranking {
 public:
  explicit Ranking(std::size_t limit) : limit_(limit) {}
  void add(const RankedCandidate& candidate);
  /// Best first. The ranking is empty afterwards.
  [[nodiscard]] std::vector<RankedCandidate> take();

 private:
  void shrink();
  std::size_t limit_;
  std::vector<RankedCandidate> kept_;
};

}  // namespace nd::search
