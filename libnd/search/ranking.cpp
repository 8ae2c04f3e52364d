// SPDX-License-Identifier: Apache-2.0
#include "search/ranking.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nd::search {

namespace {
constexpr std::size_t kSlack = 1U << 16U;  ///< candidates gathered before the worst are dropped
}

bool better(const RankedCandidate& a, const RankedCandidate& b) {
  return std::tie(a.step.value, a.peak.value, a.config) < std::tie(b.step.value, b.peak.value, b.config);
}

void Ranking::add(const RankedCandidate& candidate) {
  kept_.push_back(candidate);
  if (limit_ > 0 && kept_.size() >= limit_ + kSlack) shrink();
}

std::vector<RankedCandidate> Ranking::take() {
  shrink();
  std::sort(kept_.begin(), kept_.end(), better);
  return std::exchange(kept_, {});
}

void Ranking::shrink() {
  if (limit_ == 0 || kept_.size() <= limit_) return;
  std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(limit_), kept_.end(), better);
  kept_.resize(limit_);
}

}  // namespace nd::search
