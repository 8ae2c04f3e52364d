// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "nd/calibration.hpp"
#include "nd/ratios.hpp"
#include "nd/result.hpp"

namespace nd {

std::optional<double> pearson(const std::vector<double>& a, const std::vector<double>& b) {
  ND_CHECK(a.size() == b.size());
  if (a.size() < 2) return std::nullopt;
  const double n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n, mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  // A series is constant when its spread is only what the rounding of its mean leaves.
  const auto constant = [n](double squares, double mean) { return squares <= n * mean * mean * 1e-24; };
  if (constant(aa, mean_a) || constant(bb, mean_b)) return std::nullopt;
  return std::clamp(ab / std::sqrt(aa * bb), -1.0, 1.0);
}

std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b) {
  ND_CHECK(a.size() == b.size());
  double agree = 0, apart_a = 0, apart_b = 0;
  const auto sign = [](double x, double y) { return static_cast<double>((x > y) - (x < y)); };
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double sa = sign(a[i], a[j]), sb = sign(b[i], b[j]);
      agree += sa * sb;
      apart_a += sa * sa;
      apart_b += sb * sb;
    }
  if (apart_a == 0 || apart_b == 0) return std::nullopt;
  return agree / std::sqrt(apart_a * apart_b);
}

namespace {

std::vector<std::size_t> order_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return values[x] < values[y]; });
  return order;
}

}  // namespace

RankingQuality ranking_quality(const std::vector<double>& measured, const std::vector<double>& predicted) {
  ND_CHECK(measured.size() == predicted.size());
  RankingQuality out;
  if (measured.empty()) return out;
  std::vector<double> errors;
  for (std::size_t i = 0; i < measured.size(); ++i) errors.push_back(predicted[i] / measured[i] - 1.0);
  const ErrorStatistics statistics = error_statistics(errors);
  out.mean_error = statistics.mean_ape;
  out.median_error = statistics.median_ape;
  const std::size_t chosen = order_of(predicted).front();
  out.regret = measured[chosen] / *std::min_element(measured.begin(), measured.end()) - 1.0;
  out.pearson = pearson(measured, predicted);
  out.spearman = spearman(measured, predicted);
  out.kendall = kendall(measured, predicted);
  return out;
}

RankingQuality ranking_quality(const std::vector<RatioSample>& samples, const std::vector<double>& predicted) {
  ND_CHECK(samples.size() == predicted.size());
  struct Problem {
    std::vector<double> measured, predicted;
  };
  std::map<std::string, Problem> problems;
  std::vector<double> steps;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    steps.push_back(samples[i].step);
    problems[samples[i].problem].measured.push_back(samples[i].step);
    problems[samples[i].problem].predicted.push_back(predicted[i]);
  }
  RankingQuality out = ranking_quality(steps, predicted);
  if (problems.size() < 2) return out;
  double regret = 0, ranked = 0;
  struct Mean {
    double sum = 0, n = 0;
    void add(const std::optional<double>& value) {
      if (!value) return;
      sum += *value;
      ++n;
    }
    [[nodiscard]] std::optional<double> value() const { return n > 0 ? std::optional<double>(sum / n) : std::nullopt; }
  };
  Mean linear, rank, order;
  for (const auto& [name, problem] : problems) {
    if (problem.measured.size() < 2) continue;
    const RankingQuality one = ranking_quality(problem.measured, problem.predicted);
    regret += one.regret;
    ++ranked;
    linear.add(one.pearson);
    rank.add(one.spearman);
    order.add(one.kendall);
  }
  out.regret = ranked > 0 ? regret / ranked : 0;
  out.pearson = linear.value();
  out.spearman = rank.value();
  out.kendall = order.value();
  return out;
}

std::int64_t leading_agreement(const std::vector<double>& measured, const std::vector<double>& predicted) {
  ND_CHECK(measured.size() == predicted.size());
  const std::vector<std::size_t> order = order_of(measured);
  for (std::size_t k = 0; k < order.size(); ++k)
    for (std::size_t later = k + 1; later < order.size(); ++later)
      if (predicted[order[later]] < predicted[order[k]]) return static_cast<std::int64_t>(k);
  return static_cast<std::int64_t>(order.size());
}

double top_k_overlap(const std::vector<double>& measured, const std::vector<double>& predicted, std::size_t k) {
  ND_CHECK(measured.size() == predicted.size());
  k = std::min(k, measured.size());
  if (k == 0) return 0;
  const auto first_k = [k](const std::vector<double>& values) {
    std::vector<std::size_t> order = order_of(values);
    order.resize(k);
    std::sort(order.begin(), order.end());
    return order;
  };
  const auto a = first_k(measured), b = first_k(predicted);
  std::vector<std::size_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(k);
}

}  // namespace nd
