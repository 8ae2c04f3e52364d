// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace nd::calibration {

/// A positive constant with a log-normal prior: log(value) is normal around log(prior) with `width` as its standard deviation.
struct FitConstant {
  std::string name;
  double prior = 1.0;
  double width = 0.2;
};

/// What is fitted. Rows and constants are numbered from 0.
class FitModel {
 public:
  FitModel() = default;
  FitModel(const FitModel&) = delete;
  FitModel& operator=(const FitModel&) = delete;
  virtual ~FitModel() = default;
  [[nodiscard]] virtual std::size_t rows() const = 0;
  /// log(predicted / measured) of `row` at `values`. Called for one row at a time, rows in any order and from several threads.
  virtual double residual(std::size_t row, const std::vector<double>& values) = 0;
  /// The constants `row` depends on.
  [[nodiscard]] virtual const std::vector<std::size_t>& constants_of(std::size_t row) const = 0;
};

struct FitOptions {
  double scale = 0.12;    ///< residual at which the soft-L1 loss turns from square to linear
  int iterations = 12;    ///< most steps
  double step = 0.02;     ///< of log(value), for the numeric derivatives
  double least_gain = 1e-4;  ///< relative fall of the cost below which it stops
  int jobs = 1;
};

struct FitResult {
  std::vector<double> values, z;  ///< z: distance from the prior in prior standard deviations
  std::vector<double> residuals;  ///< of every row, weightless ones too
  std::vector<double> sensitivity;  ///< fall of the row cost, linearised, that moving this constant alone from prior to value brings
  double row_cost = 0, prior_cost = 0;
  int iterations = 0;
};

/// Maximum a posteriori by Levenberg-Marquardt on the soft-L1 loss: minimises
/// sum w_i 2 (sqrt(1 + (r_i / scale)^2) - 1) + sum z_j^2. A row of weight 0 is predicted but not learned from.
class Fitter {
 public:
  /// `model` must outlive the fitter.
  Fitter(std::vector<FitConstant> constants, FitModel& model, FitOptions options);
  /// Residuals and costs at `values` (empty = the priors); no step is taken and there is no sensitivity.
  [[nodiscard]] FitResult predict(const std::vector<double>& values, const std::vector<double>& weights) const;
  /// Starts from `start` (values; empty = the priors) with fresh derivatives in every step.
  [[nodiscard]] FitResult solve(const std::vector<double>& weights, const std::vector<double>& start = {});
  /// From an optimum of other weights, with the derivatives of the last solve() kept: for hold-outs.
  [[nodiscard]] FitResult refit(const std::vector<double>& weights, const FitResult& from) const;

 private:
  struct Normal;
  [[nodiscard]] std::vector<double> residuals(const std::vector<double>& values) const;
  void differentiate(const std::vector<double>& values, const std::vector<double>& at);
  [[nodiscard]] Normal normal(const std::vector<double>& weights, const std::vector<double>& r, const std::vector<double>& z) const;
  [[nodiscard]] double row_cost(const std::vector<double>& weights, const std::vector<double>& r) const;
  [[nodiscard]] std::vector<double> values_of(const std::vector<double>& z) const;
  [[nodiscard]] std::vector<double> z_of(const std::vector<double>& values) const;
  bool advance(const std::vector<double>& weights, FitResult& state, double& damping) const;
  void finish(const std::vector<double>& weights, FitResult& state) const;

  std::vector<FitConstant> constants_;
  FitModel& model_;
  FitOptions options_;
  std::vector<std::vector<double>> jacobian_;  ///< [row][i]: d residual / d z of constants_of(row)[i]
};

}  // namespace nd::calibration
