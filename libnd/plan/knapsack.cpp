// SPDX-License-Identifier: Apache-2.0
#include "plan/knapsack.hpp"

#include <algorithm>
#include <limits>

namespace nd::plan {

namespace {

constexpr std::size_t kNoParent = std::numeric_limits<std::size_t>::max();

/// A choice for the groups so far: the choice for the groups before (`parent`) and the layers of this one by option
/// (`counts`, an index into the pool of compositions).
struct Partial {
  MomentBytes bytes{};
  double seconds = 0;
  std::size_t parent = kNoParent;
  std::size_t counts = 0;
};

bool no_worse(const Partial& a, const Partial& b) {
  return a.seconds <= b.seconds && a.bytes[0] <= b.bytes[0] && a.bytes[1] <= b.bytes[1];
}

/// Keeps what no other beats in all three figures; the first of equals.
void keep_front(std::vector<Partial>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Partial& a, const Partial& b) {
    if (a.seconds < b.seconds || b.seconds < a.seconds) return a.seconds < b.seconds;
    if (a.bytes[0] < b.bytes[0] || b.bytes[0] < a.bytes[0]) return a.bytes[0] < b.bytes[0];
    return a.bytes[1] < b.bytes[1];
  });
  std::vector<Partial> front;
  // With ascending seconds a later one survives only by fewer bytes; the last survivors are the likeliest to beat it.
  for (const Partial& candidate : all)
    if (std::none_of(front.rbegin(), front.rend(), [&](const Partial& kept) { return no_worse(kept, candidate); }))
      front.push_back(candidate);
  all = std::move(front);
}

/// The least that the groups from the n-th on can hold and cost, each figure on its own.
std::vector<Partial> smallest_rest(std::span<const LayerGroup> groups) {
  std::vector<Partial> rest(groups.size() + 1);
  for (std::size_t g = groups.size(); g-- > 0;) {
    rest[g] = rest[g + 1];
    if (groups[g].layers == 0) continue;
    Partial least{{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()},
                  std::numeric_limits<double>::infinity()};
    for (const LayerOption& option : groups[g].options) {
      least.seconds = std::min(least.seconds, option.seconds);
      for (std::size_t m = 0; m < kMoments; ++m) least.bytes[m] = std::min(least.bytes[m], option.bytes[m]);
    }
    const auto layers = static_cast<double>(groups[g].layers);
    rest[g].seconds += layers * least.seconds;
    for (std::size_t m = 0; m < kMoments; ++m) rest[g].bytes[m] += layers * least.bytes[m];
  }
  return rest;
}

bool fits(const Partial& partial, const Partial& rest, const MomentBytes& budget) {
  return partial.bytes[0] + rest.bytes[0] <= budget[0] && partial.bytes[1] + rest.bytes[1] <= budget[1];
}

class Knapsack {
 public:
  Knapsack(std::span<const LayerGroup> groups, const MomentBytes& budget)
      : groups_(groups), budget_(budget), rest_(smallest_rest(groups)) {}

  std::optional<LayerChoice> solve() {
    if (!fits({}, rest_[0], budget_)) return std::nullopt;
    std::vector<std::vector<Partial>> fronts{{Partial{}}};
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      fronts.push_back(merge(fronts.back(), g));
      if (fronts.back().empty()) return std::nullopt;
    }
    return read_back(fronts);
  }

 private:
  /// Every way to give the layers of a group their options that no other way beats.
  std::vector<Partial> compositions(std::size_t g) {
    std::vector<Partial> out;
    std::vector<std::int64_t> counts(groups_[g].options.size(), 0);
    spread({g, 0, groups_[g].layers}, counts, {}, out);
    keep_front(out);
    return out;
  }
  struct Place {
    std::size_t group, option;
    std::int64_t left;
  };
  void spread(const Place& at, std::vector<std::int64_t>& counts, const Partial& sum, std::vector<Partial>& out) {
    const auto& options = groups_[at.group].options;
    if (at.option == options.size()) {
      if (at.left > 0) return;
      out.push_back(sum);
      out.back().counts = pool_.size();
      pool_.push_back(counts);
      return;
    }
    const bool last = at.option + 1 == options.size();
    for (std::int64_t n = at.left; n >= (last ? at.left : 0); --n) {
      counts[at.option] = n;
      Partial next = sum;
      next.seconds += static_cast<double>(n) * options[at.option].seconds;
      for (std::size_t m = 0; m < kMoments; ++m) next.bytes[m] += static_cast<double>(n) * options[at.option].bytes[m];
      spread({at.group, at.option + 1, at.left - n}, counts, next, out);
    }
    counts[at.option] = 0;
  }

  std::vector<Partial> merge(const std::vector<Partial>& before, std::size_t g) {
    const auto ways = compositions(g);
    std::vector<Partial> out;
    for (std::size_t i = 0; i < before.size(); ++i)
      for (const Partial& way : ways) {
        Partial next{{before[i].bytes[0] + way.bytes[0], before[i].bytes[1] + way.bytes[1]}, before[i].seconds + way.seconds, i, way.counts};
        if (fits(next, rest_[g + 1], budget_)) out.push_back(next);
      }
    keep_front(out);
    return out;
  }

  [[nodiscard]] LayerChoice read_back(const std::vector<std::vector<Partial>>& fronts) const {
    // The front is sorted by seconds, then bytes: its first entry is the answer.
    std::size_t at = 0;
    LayerChoice out;
    out.seconds = fronts.back().front().seconds;
    out.bytes = fronts.back().front().bytes;
    out.layers.resize(groups_.size());
    for (std::size_t g = groups_.size(); g-- > 0;) {
      const Partial& partial = fronts[g + 1][at];
      out.layers[g] = pool_[partial.counts];
      at = partial.parent;
    }
    return out;
  }

  std::span<const LayerGroup> groups_;
  MomentBytes budget_;
  std::vector<Partial> rest_;
  std::vector<std::vector<std::int64_t>> pool_;
};

}  // namespace

std::optional<LayerChoice> choose_options(std::span<const LayerGroup> groups, const MomentBytes& budget) {
  return Knapsack(groups, budget).solve();
}

}  // namespace nd::plan
