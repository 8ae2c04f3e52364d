// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace nd::calibration {

/// sum_j a_j r_j = y, everything as a share of the measured step.
struct RidgeEquation {
  std::vector<double> a;
  double y = 0;
};

struct RidgeOptions {
  double centre = 1.0;  ///< what the ridge pulls every unknown to
  double width = 0.25;  ///< prior standard deviation of a ratio around the centre [assumed]: parts of a step are usually within a quarter
  double noise = 0.02;  ///< scatter of a measured step where the rows are too few to tell [assumed]: repeats of a run differ by 1-3 %
};

struct RidgeResult {
  std::vector<double> r;
  std::vector<double> error;  ///< standard errors, the prior counted in
  double noise = 0;           ///< robust standard deviation of the residuals
};

/// Minimises sum Huber(a_i r - y_i) / noise^2 + sum (r_j - centre)^2 / width^2 with r >= 0. The noise is estimated from the residuals of a fit
/// without the ridge (1.4826 times their median, with degrees of freedom), so that data without noise is reproduced and noisy data stays near the centre. Unknowns
/// without signal stand at the centre. Collinear unknowns share what they explain together. Never NaN for finite input.
[[nodiscard]] RidgeResult solve_robust_ridge(const std::vector<RidgeEquation>& equations, std::size_t unknowns, const RidgeOptions& options);

}  // namespace nd::calibration
