// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "nd/calibration.hpp"
#include "nd/result.hpp"

namespace nd {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

ErrorStatistics error_statistics(const std::vector<double>& signed_errors) {
  ErrorStatistics out;
  if (signed_errors.empty()) return out;
  std::vector<double> absolute;
  absolute.reserve(signed_errors.size());
  for (const double error : signed_errors) absolute.push_back(std::abs(error));
  out.n = static_cast<std::int64_t>(signed_errors.size());
  out.mean_ape = std::accumulate(absolute.begin(), absolute.end(), 0.0) / static_cast<double>(absolute.size());
  out.median_ape = quantile(absolute, 0.5);
  out.p90_ape = quantile(absolute, 0.9);
  out.max_ape = *std::max_element(absolute.begin(), absolute.end());
  out.bias = quantile(signed_errors, 0.5);
  return out;
}

namespace {

/// 1-based ranks; equal values share the mean of their ranks.
std::vector<double> average_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    const double rank = (static_cast<double>(first) + static_cast<double>(last)) / 2.0 + 1.0;
    for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = rank;
    first = last + 1;
  }
  return ranks;
}

}  // namespace

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  ND_CHECK(a.size() == b.size());
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> ra = average_ranks(a);
  const std::vector<double> rb = average_ranks(b);
  const double mean = (static_cast<double>(a.size()) + 1.0) / 2.0;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - mean) * (rb[i] - mean);
    aa += (ra[i] - mean) * (ra[i] - mean);
    bb += (rb[i] - mean) * (rb[i] - mean);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

}  // namespace nd
