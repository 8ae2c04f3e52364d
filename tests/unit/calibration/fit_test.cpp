// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace {

using nd::calibration::FitConstant;
using nd::calibration::FitModel;
using nd::calibration::FitOptions;
using nd::calibration::FitResult;
using nd::calibration::Fitter;

/// y = max(a x, c) / b: two constants that matter to every row, one that matters to the small ones, one to none.
class Roof : public FitModel {
 public:
  explicit Roof(double outlier = 0) {
    for (int i = 1; i <= 40; ++i) {
      x_.push_back(0.1 * i);
      y_.push_back(std::max(3.0 * x_.back(), 2.0));
    }
    if (outlier > 0) y_.back() *= outlier;
  }
  [[nodiscard]] std::size_t rows() const override { return x_.size(); }
  double residual(std::size_t row, const std::vector<double>& values) override {
    return std::log(std::max(values[0] * x_[row], values[1]) / y_[row]);
  }
  [[nodiscard]] const std::vector<std::size_t>& constants_of(std::size_t) const override { return own_; }

 private:
  std::vector<double> x_, y_;
  std::vector<std::size_t> own_{0, 1, 2};
};

const std::vector<FitConstant> kConstants{{"slope", 2.0, 0.5}, {"floor", 1.0, 0.5}, {"silent", 7.0, 0.1}};

}  // namespace

TEST_CASE("constants of generated data are found again, silent ones stay at their prior", "[fit]") {
  Roof model;
  Fitter fitter(kConstants, model, FitOptions{.iterations = 40, .least_gain = 1e-9});
  const FitResult fit = fitter.solve(std::vector<double>(model.rows(), 100.0));
  CHECK(fit.values[0] == Approx(3.0).epsilon(0.002));
  CHECK(fit.values[1] == Approx(2.0).epsilon(0.002));
  CHECK(fit.values[2] == Approx(7.0).epsilon(1e-12));
  CHECK(fit.z[0] == Approx(std::log(fit.values[0] / 2.0) / 0.5));
  CHECK(fit.sensitivity[0] > 1);
  CHECK(fit.sensitivity[2] == Approx(0.0).margin(1e-12));
}

TEST_CASE("rows without weight teach nothing", "[fit]") {
  Roof model;
  Fitter fitter(kConstants, model, FitOptions{});
  const FitResult fit = fitter.solve(std::vector<double>(model.rows(), 0.0));
  CHECK(fit.values[0] == Approx(2.0));
  CHECK(fit.row_cost == Approx(0.0).margin(1e-12));
  REQUIRE(fit.residuals.size() == model.rows());
  CHECK(fit.residuals.back() == Approx(std::log(2.0 / 3.0)));  // x = 4: slope 2 instead of 3
}

TEST_CASE("the prior decides against few rows, and one wild row does not turn the fit", "[fit]") {
  Roof model;
  std::vector<double> few(model.rows(), 0.0);
  few[39] = 0.02;
  Fitter fitter(kConstants, model, FitOptions{.iterations = 40});
  const FitResult weak = fitter.solve(few);
  // Quadratic near 0: minimise 0.02 (r / 0.12)^2 + z^2 with r = log(2/3) + 0.5 z, loss linear beyond 0.12: z stays below 0.5.
  CHECK(weak.z[0] > 0);
  CHECK(weak.z[0] < 0.5);
  Roof wild(10.0);
  Fitter robust(kConstants, wild, FitOptions{.iterations = 40});
  CHECK(robust.solve(std::vector<double>(wild.rows(), 100.0)).values[0] == Approx(3.0).epsilon(0.02));
}

TEST_CASE("a hold-out starts from the whole fit and moves where the held-out rows had pulled", "[fit]") {
  Roof model;
  std::vector<double> weights(model.rows(), 100.0);
  Fitter fitter(kConstants, model, FitOptions{.iterations = 40});
  const FitResult all = fitter.solve(weights);
  for (std::size_t row = 0; row < 8; ++row) weights[row] = 0;  // every row on the floor
  const FitResult held = fitter.refit(weights, all);
  CHECK(held.values[0] == Approx(3.0).epsilon(0.01));
  CHECK(held.values[1] < all.values[1]);  // back towards its prior, as far as the rows above the floor allow
}
