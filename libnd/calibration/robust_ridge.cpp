// SPDX-License-Identifier: Apache-2.0
#include "calibration/robust_ridge.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <Eigen/Dense>

#include "nd/calibration.hpp"

namespace nd::calibration {

namespace {

constexpr double kHuber = 1.345;        // standard deviations from which a residual counts linearly: 95 % efficient for normal noise
constexpr double kMadToSigma = 1.4826;  // of a normal distribution
constexpr double kLeastNoise = 1e-8;    // share of a step: what rounding of a printed figure leaves
constexpr double kNoSignal = 1e-9;      // share of a step below which an estimate says nothing
constexpr int kRounds = 60;

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

struct System {
  Matrix a;
  Vector y;
};

System make_system(const std::vector<RidgeEquation>& equations, std::size_t unknowns) {
  System out{Matrix::Zero(static_cast<Eigen::Index>(equations.size()), static_cast<Eigen::Index>(unknowns)),
             Vector::Zero(static_cast<Eigen::Index>(equations.size()))};
  for (std::size_t i = 0; i < equations.size(); ++i) {
    for (std::size_t j = 0; j < unknowns; ++j) out.a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = equations[i].a[j];
    out.y(static_cast<Eigen::Index>(i)) = equations[i].y;
  }
  return out;
}

/// Least squares of the rows (weights applied) and of ridge * (r - centre), over the free unknowns; the others are 0. Stacked and solved by
/// QR: the normal equations would lose the collinear directions to rounding.
Vector solve_free(const System& system, const Vector& weight, double ridge, double centre, const std::vector<Eigen::Index>& free) {
  const Eigen::Index n = system.a.rows(), p = static_cast<Eigen::Index>(free.size());
  Vector out = Vector::Zero(system.a.cols());
  if (p == 0) return out;
  Matrix stacked = Matrix::Zero(n + p, p);
  Vector right = Vector::Zero(n + p);
  for (Eigen::Index j = 0; j < p; ++j) stacked.block(0, j, n, 1) = system.a.col(free[static_cast<std::size_t>(j)]);
  right.head(n) = system.y - stacked.topRows(n) * Vector::Constant(p, centre);
  for (Eigen::Index i = 0; i < n; ++i) {
    stacked.row(i) *= std::sqrt(weight(i));
    right(i) *= std::sqrt(weight(i));
  }
  stacked.bottomRows(p).diagonal().setConstant(ridge);
  const Vector moved = stacked.colPivHouseholderQr().solve(right);
  for (Eigen::Index j = 0; j < p; ++j) out(free[static_cast<std::size_t>(j)]) = centre + moved(j);
  return out;
}

/// r >= 0 by active sets (Lawson and Hanson 1974, chapter 23, started with every unknown free): the most negative unknown is held at 0, a
/// held one is let go where the cost falls with it.
Vector solve_non_negative(const System& system, const Vector& weight, double ridge, double centre) {
  const Eigen::Index p = system.a.cols();
  std::vector<bool> held(static_cast<std::size_t>(p), false);
  Vector r = Vector::Constant(p, centre);
  for (Eigen::Index round = 0; round < 4 * p + 1; ++round) {
    std::vector<Eigen::Index> free;
    for (Eigen::Index j = 0; j < p; ++j)
      if (!held[static_cast<std::size_t>(j)]) free.push_back(j);
    r = solve_free(system, weight, ridge, centre, free);
    Eigen::Index worst = 0;
    if (r.minCoeff(&worst) < 0) {
      held[static_cast<std::size_t>(worst)] = true;
      continue;
    }
    const Vector slope = system.a.transpose() * (weight.asDiagonal() * (system.a * r - system.y)) + ridge * ridge * (r - Vector::Constant(p, centre));
    Eigen::Index best = -1;
    for (Eigen::Index j = 0; j < p; ++j)
      if (held[static_cast<std::size_t>(j)] && slope(j) < -1e-12 && (best < 0 || slope(j) < slope(best))) best = j;
    if (best < 0) break;
    held[static_cast<std::size_t>(best)] = false;
  }
  return r.cwiseMax(0.0);
}

double robust_noise(const Vector& residual, Eigen::Index used, double assumed) {
  const Eigen::Index n = residual.size(), freedom = n - used;
  if (freedom < 1) return assumed;
  std::vector<double> absolute(static_cast<std::size_t>(n));
  for (Eigen::Index i = 0; i < n; ++i) absolute[static_cast<std::size_t>(i)] = std::abs(residual(i));
  const double root = std::sqrt(static_cast<double>(n) / static_cast<double>(freedom));
  return std::max(kLeastNoise, kMadToSigma * quantile(absolute, 0.5) * root);
}

struct Huber {
  Vector r, weight;
  double noise = 0;
};

/// Iteratively reweighted least squares. Without a stated noise it is estimated from the residuals of each round, with next to no ridge.
Huber huber_fit(const System& system, Eigen::Index used, const RidgeOptions& options, std::optional<double> noise) {
  Huber out{Vector::Constant(system.a.cols(), options.centre), Vector::Ones(system.a.rows()), noise.value_or(options.noise)};
  for (int round = 0; round < kRounds; ++round) {
    const Vector before = out.r;
    out.r = solve_non_negative(system, out.weight, (noise ? *noise : kLeastNoise) / options.width, options.centre);
    const Vector residual = system.a * out.r - system.y;
    if (!noise) out.noise = robust_noise(residual, used, options.noise);
    for (Eigen::Index i = 0; i < residual.size(); ++i)
      out.weight(i) = std::min(1.0, kHuber * out.noise / std::max(std::abs(residual(i)), 1e-300));
    if (round > 0 && (out.r - before).cwiseAbs().maxCoeff() < 1e-12) break;
  }
  return out;
}

}  // namespace

RidgeResult solve_robust_ridge(const std::vector<RidgeEquation>& equations, std::size_t unknowns, const RidgeOptions& options) {
  const auto p = static_cast<Eigen::Index>(unknowns);
  RidgeResult out{std::vector<double>(unknowns, options.centre), std::vector<double>(unknowns, options.width), options.noise};
  if (unknowns == 0 || equations.empty()) return out;
  const System system = make_system(equations, unknowns);
  Eigen::Index used = 0;
  for (Eigen::Index j = 0; j < p; ++j)
    if (system.a.col(j).cwiseAbs().maxCoeff() > kNoSignal) ++used;

  // The noise comes from a fit with next to no ridge: residuals that the ridge itself makes would keep it alive in data without noise.
  const Huber loose = huber_fit(system, used, options, std::nullopt);
  const double noise = loose.noise;
  const Huber fit = huber_fit(system, used, options, noise);
  const Vector& r = fit.r;
  const Vector& weight = fit.weight;
  const double ridge = noise / options.width;
  Matrix information = system.a.transpose() * weight.asDiagonal() * system.a;
  information.diagonal().array() += ridge * ridge;
  const Matrix covariance = information.ldlt().solve(Matrix::Identity(p, p)) * noise * noise;
  for (Eigen::Index j = 0; j < p; ++j) {
    out.r[static_cast<std::size_t>(j)] = r(j);
    // The prior is never widened by data; where rounding has eaten the inverse it is what is left.
    const double variance = covariance(j, j);
    const double most = options.width * options.width;
    out.error[static_cast<std::size_t>(j)] = std::sqrt(std::isfinite(variance) && variance >= 0 ? std::min(variance, most) : most);
  }
  out.noise = noise;
  return out;
}

}  // namespace nd::calibration
