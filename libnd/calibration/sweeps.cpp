// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "nd/calibration.hpp"

namespace nd {
namespace {

using GroupKey = std::tuple<std::string, std::string, std::string, std::int64_t, double, std::int64_t, std::string>;
struct Times {
  std::vector<double> measured, predicted;
};

Sweep summarize(const GroupKey& key, const std::map<std::string, Times>& strategies) {
  Sweep out;
  std::tie(out.source, out.model, out.device, out.devices, out.seq_len, out.gbs, out.variant) = key;
  out.n = static_cast<std::int64_t>(strategies.size());
  struct Entry {
    double predicted, measured;
    const std::string* strategy;
  };
  std::vector<Entry> entries;
  std::vector<double> measured, predicted;
  for (const auto& [strategy, times] : strategies) {
    entries.push_back({quantile(times.predicted, 0.5), quantile(times.measured, 0.5), &strategy});
    predicted.push_back(entries.back().predicted);
    measured.push_back(entries.back().measured);
  }
  out.spearman = spearman(measured, predicted);
  const auto faster = [](const Entry& a, const Entry& b) { return a.measured < b.measured; };
  const Entry best = *std::min_element(entries.begin(), entries.end(), faster);
  out.measured_best = *best.strategy;
  // Ties of the prediction stay in the order of the strategies' texts.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.predicted < b.predicted; });
  out.predicted_best = *entries.front().strategy;
  if (best.measured <= 0) return out;
  constexpr std::ptrdiff_t kTried = 3;
  const auto tried = entries.begin() + std::min(kTried, static_cast<std::ptrdiff_t>(entries.size()));
  out.regret = entries.front().measured / best.measured - 1.0;
  out.best_of_three = std::min_element(entries.begin(), tried, faster)->measured / best.measured - 1.0;
  return out;
}

}  // namespace

std::vector<Sweep> find_sweeps(const std::vector<SweepPoint>& points, std::int64_t least) {
  std::map<GroupKey, std::map<std::string, Times>> groups;
  for (const SweepPoint& point : points) {
    Times& times = groups[GroupKey{point.source, point.model, point.device, point.devices, point.seq_len, point.gbs, point.variant}]
                         [point.strategy];
    times.measured.push_back(point.measured);
    times.predicted.push_back(point.predicted);
  }
  std::vector<Sweep> out;
  for (const auto& [key, strategies] : groups)
    if (static_cast<std::int64_t>(strategies.size()) >= least) out.push_back(summarize(key, strategies));
  return out;
}

}  // namespace nd
