// SPDX-License-Identifier: Apache-2.0
#include "search/ranking.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace nd {

int dimensions_in_use(const ParallelConfig& config) {
  int count = 0;
  for (const int degree : {config.dp, config.tp, config.pp, config.cp, config.ep, config.etp, config.vpp, config.op, config.seq_split})
    count += degree > 1 ? 1 : 0;
  count += config.sequence_parallel ? 1 : 0;
  count += config.zero != ZeroLevel::none ? 1 : 0;
  count += config.recompute != Recompute::off ? 1 : 0;
  return count;
}

namespace search {

namespace {

constexpr std::size_t kMostReserved = 1U << 16U;  ///< a bounded ranking that large grows as it fills

int three_way(double a, double b) { return a < b ? -1 : b < a ? 1 : 0; }

}  // namespace

double tie_value(double figure) {
  constexpr std::uint64_t kDropped = 52 - 30;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << (kDropped - 1);
  const auto bits = std::bit_cast<std::uint64_t>(figure) + kHalf;
  return std::bit_cast<double>(bits >> kDropped << kDropped);
}

bool RankOrder::operator()(const RankedCandidate& a, const RankedCandidate& b) const {
  const int step = three_way(tie_value(a.step.value), tie_value(b.step.value));
  const int peak = three_way(a.peak.value, b.peak.value);
  const int first = by_memory_ ? peak : step, second = by_memory_ ? step : peak;
  if (first != 0) return first < 0;
  if (second != 0) return second < 0;
  const int used_a = dimensions_in_use(a.config), used_b = dimensions_in_use(b.config);
  return used_a != used_b ? used_a < used_b : a.config < b.config;
}

Ranking::Ranking(RankOrder order, std::size_t limit) : order_(order), limit_(limit) { kept_.reserve(std::min(limit, kMostReserved)); }

void Ranking::add(const RankedCandidate& candidate) {
  if (limit_ == 0) return kept_.push_back(candidate);
  if (kept_.size() == limit_) {
    if (!order_(candidate, kept_.front())) return;
    std::pop_heap(kept_.begin(), kept_.end(), order_);
    kept_.back() = candidate;
  } else {
    kept_.push_back(candidate);
  }
  std::push_heap(kept_.begin(), kept_.end(), order_);
}

std::vector<RankedCandidate> Ranking::take() {
  std::sort(kept_.begin(), kept_.end(), order_);
  return std::exchange(kept_, {});
}

std::vector<RankedCandidate> merge_rankings(RankOrder order, std::size_t limit, std::vector<std::vector<RankedCandidate>> parts) {
  std::vector<RankedCandidate> all;
  for (auto& part : parts) {
    if (all.empty()) all = std::move(part);
    else all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end(), order);
  const auto same = [](const RankedCandidate& a, const RankedCandidate& b) { return a.config == b.config; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  if (limit > 0 && all.size() > limit) all.resize(limit);
  return all;
}

void ParetoFront::add(const RankedCandidate& candidate) {
  const RankOrder by_step;
  const auto place = std::lower_bound(front_.begin(), front_.end(), candidate, by_step);
  // Everything before is at least as fast: the last of it has the smallest peak.
  if (place != front_.begin() && std::prev(place)->peak <= candidate.peak) return;
  auto end = place;
  while (end != front_.end() && candidate.peak <= end->peak) ++end;
  if (end == place) {
    front_.insert(place, candidate);
  } else {
    *place = candidate;
    front_.erase(std::next(place), end);
  }
}

}  // namespace search

}  // namespace nd
