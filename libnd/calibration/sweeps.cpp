// SPDX-License-Identifier: Apache-2.0
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
  std::vector<double> measured, predicted;
  double best_predicted = 0, chosen = 0, best_measured = 0;
  for (const auto& [strategy, times] : strategies) {
    const double m = quantile(times.measured, 0.5);
    const double p = quantile(times.predicted, 0.5);
    if (measured.empty() || p < best_predicted) {
      best_predicted = p;
      chosen = m;
      out.predicted_best = strategy;
    }
    if (measured.empty() || m < best_measured) {
      best_measured = m;
      out.measured_best = strategy;
    }
    measured.push_back(m);
    predicted.push_back(p);
  }
  out.spearman = spearman(measured, predicted);
  out.regret = best_measured > 0 ? chosen / best_measured - 1.0 : 0.0;
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
