// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include <Eigen/Dense>

#include "nd/result.hpp"

namespace nd::calibration {

namespace {

constexpr double kFirstDamping = 1e-2, kMostDamping = 1e6;
constexpr double kLongestStep = 1.5;  ///< prior standard deviations of one constant in one step: the model is piecewise smooth
constexpr int kRefitSteps = 6;

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

/// `body(row)` for every row, in contiguous blocks; every row writes only its own results.
void for_rows(std::size_t rows, int jobs, const std::function<void(std::size_t)>& body) {
  const std::size_t workers = std::max<std::size_t>(1, std::min(static_cast<std::size_t>(std::max(jobs, 1)), rows));
  const auto block = [&](std::size_t worker) {
    for (std::size_t row = worker; row < rows; row += workers) body(row);
  };
  std::vector<std::thread> threads;
  for (std::size_t worker = 1; worker < workers; ++worker) threads.emplace_back(block, worker);
  block(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

struct Fitter::Normal {
  Eigen::MatrixXd matrix;
  Eigen::VectorXd gradient;
};

Fitter::Fitter(std::vector<FitConstant> constants, FitModel& model, FitOptions options)
    : constants_(std::move(constants)), model_(model), options_(options) {}

std::vector<double> Fitter::values_of(const std::vector<double>& z) const {
  std::vector<double> values(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) values[i] = constants_[i].prior * std::exp(constants_[i].width * z[i]);
  return values;
}

std::vector<double> Fitter::z_of(const std::vector<double>& values) const {
  std::vector<double> z(values.size());
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = std::log(values[i] / constants_[i].prior) / constants_[i].width;
  return z;
}

std::vector<double> Fitter::residuals(const std::vector<double>& values) const {
  std::vector<double> out(model_.rows());
  for_rows(out.size(), options_.jobs, [&](std::size_t row) { out[row] = model_.residual(row, values); });
  return out;
}

void Fitter::differentiate(const std::vector<double>& values, const std::vector<double>& at) {
  jacobian_.resize(at.size());
  for_rows(at.size(), options_.jobs, [&](std::size_t row) {
    const std::vector<std::size_t>& own = model_.constants_of(row);
    jacobian_[row].resize(own.size());
    std::vector<double> moved = values;
    for (std::size_t i = 0; i < own.size(); ++i) {
      moved[own[i]] = values[own[i]] * std::exp(options_.step);
      jacobian_[row][i] = (model_.residual(row, moved) - at[row]) / options_.step * constants_[own[i]].width;
      moved[own[i]] = values[own[i]];
    }
  });
}

double Fitter::row_cost(const std::vector<double>& weights, const std::vector<double>& r) const {
  double cost = 0;
  for (std::size_t row = 0; row < r.size(); ++row) {
    const double u = r[row] / options_.scale;
    cost += weights[row] * 2.0 * (std::sqrt(1.0 + u * u) - 1.0);
  }
  return cost;
}

// Gauss-Newton of the reweighted squares, plus one from each prior.
Fitter::Normal Fitter::normal(const std::vector<double>& weights, const std::vector<double>& r, const std::vector<double>& z) const {
  const auto n = static_cast<Eigen::Index>(z.size());
  Normal out{Eigen::MatrixXd::Identity(n, n), Eigen::Map<const Eigen::VectorXd>(z.data(), n)};
  for (std::size_t row = 0; row < r.size(); ++row) {
    if (weights[row] <= 0) continue;
    const double u = r[row] / options_.scale;
    const double weight = weights[row] / (options_.scale * options_.scale * std::sqrt(1.0 + u * u));
    const std::vector<std::size_t>& own = model_.constants_of(row);
    const std::vector<double>& slope = jacobian_[row];
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (slope[i] == 0) continue;
      const auto a = static_cast<Eigen::Index>(own[i]);
      out.gradient(a) += weight * slope[i] * r[row];
      for (std::size_t j = 0; j < own.size(); ++j)
        out.matrix(a, static_cast<Eigen::Index>(own[j])) += weight * slope[i] * slope[j];
    }
  }
  return out;
}

/// One step; false when no damping lowers the cost by more than the least gain.
bool Fitter::advance(const std::vector<double>& weights, FitResult& state, double& damping) const {
  const Normal system = normal(weights, state.residuals, state.z);
  const double before = state.row_cost + state.prior_cost;
  for (; damping < kMostDamping; damping *= 8) {
    Eigen::MatrixXd damped = system.matrix;
    damped.diagonal() *= 1.0 + damping;
    const Eigen::VectorXd move = damped.ldlt().solve(system.gradient);
    FitResult next = state;
    for (std::size_t i = 0; i < next.z.size(); ++i)
      next.z[i] -= std::clamp(move(static_cast<Eigen::Index>(i)), -kLongestStep, kLongestStep);
    next.values = values_of(next.z);
    next.residuals = residuals(next.values);
    next.row_cost = row_cost(weights, next.residuals);
    next.prior_cost = sum_of_squares(next.z);
    const double after = next.row_cost + next.prior_cost;
    if (after >= before) continue;
    damping = std::max(damping / 8, 1e-8);
    ++next.iterations;
    state = std::move(next);
    return before - after > options_.least_gain * before;
  }
  return false;
}

void Fitter::finish(const std::vector<double>& weights, FitResult& state) const {
  state.sensitivity.assign(constants_.size(), 0.0);
  for (std::size_t row = 0; row < state.residuals.size(); ++row) {
    if (weights[row] <= 0) continue;
    const std::vector<std::size_t>& own = model_.constants_of(row);
    const double u = state.residuals[row] / options_.scale;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double back = (state.residuals[row] - jacobian_[row][i] * state.z[own[i]]) / options_.scale;
      state.sensitivity[own[i]] += weights[row] * 2.0 * (std::sqrt(1.0 + back * back) - std::sqrt(1.0 + u * u));
    }
  }
}

FitResult Fitter::predict(const std::vector<double>& values, const std::vector<double>& weights) const {
  ND_CHECK(weights.size() == model_.rows());
  FitResult state;
  state.z = values.empty() ? std::vector<double>(constants_.size(), 0.0) : z_of(values);
  state.values = values_of(state.z);
  state.residuals = residuals(state.values);
  state.row_cost = row_cost(weights, state.residuals);
  state.prior_cost = sum_of_squares(state.z);
  return state;
}

FitResult Fitter::solve(const std::vector<double>& weights, const std::vector<double>& start) {
  FitResult state = predict(start, weights);
  double damping = kFirstDamping;
  differentiate(state.values, state.residuals);
  while (state.iterations < options_.iterations && advance(weights, state, damping)) differentiate(state.values, state.residuals);
  finish(weights, state);
  return state;
}

FitResult Fitter::refit(const std::vector<double>& weights, const FitResult& from) const {
  FitResult state = from;
  state.iterations = 0;
  state.row_cost = row_cost(weights, state.residuals);
  double damping = kFirstDamping;
  while (state.iterations < kRefitSteps && advance(weights, state, damping)) {
  }
  finish(weights, state);
  return state;
}

}  // namespace nd::calibration
