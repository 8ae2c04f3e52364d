// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cmath>

#include "nd/calibration.hpp"

TEST_CASE("quantiles interpolate between order statistics", "[calibration]") {
  CHECK(nd::quantile({}, 0.5) == 0.0);
  CHECK(nd::quantile({7}, 0.9) == 7.0);
  CHECK(nd::quantile({4, 1, 3, 2}, 0.5) == 2.5);    // position 1.5 of 1 2 3 4
  CHECK(nd::quantile({5, 1, 3}, 0.5) == 3.0);
  CHECK(nd::quantile({0, 10, 20, 30, 40}, 0.9) == Approx(36.0));  // position 3.6
  CHECK(nd::quantile({1, 2, 3}, 1.0) == 3.0);
  CHECK(nd::quantile({1, 2, 3}, 0.0) == 1.0);
}

TEST_CASE("error statistics of five rows by hand", "[calibration]") {
  // signed -0.2 -0.1 0 0.1 0.4: |e| sorted 0 0.1 0.1 0.2 0.4
  const nd::ErrorStatistics s = nd::error_statistics({0.4, -0.2, 0.1, 0.0, -0.1});
  CHECK(s.n == 5);
  CHECK(s.mean_ape == Approx(0.8 / 5));
  CHECK(s.median_ape == Approx(0.1));
  CHECK(s.p90_ape == Approx(0.2 + 0.6 * 0.2));  // position 3.6
  CHECK(s.max_ape == Approx(0.4));
  CHECK(s.bias == 0.0);
  CHECK(nd::error_statistics({}) == nd::ErrorStatistics{});
}

TEST_CASE("the bias is the median of the signed errors", "[calibration]") {
  CHECK(nd::error_statistics({-0.3, -0.1, 0.5}).bias == Approx(-0.1));
}

TEST_CASE("rank correlation", "[calibration]") {
  CHECK(*nd::spearman({1, 2, 3, 4}, {10, 20, 30, 40}) == Approx(1.0));
  CHECK(*nd::spearman({1, 2, 3, 4}, {4, 3, 2, 1}) == Approx(-1.0));
  // ranks 1 2 3 4 against 1 3 2 4: 1 - 6 * (0 + 1 + 1 + 0) / (4 * 15) = 0.8
  CHECK(*nd::spearman({1, 2, 3, 4}, {1, 3, 2, 4}) == Approx(0.8));
  // ties: ranks 1.5 1.5 3 against 1 2 3: covariance 1.5, variances 1.5 and 2 -> 1.5 / sqrt(3)
  CHECK(*nd::spearman({5, 5, 9}, {1, 2, 3}) == Approx(1.5 / std::sqrt(3.0)));
  CHECK_FALSE(nd::spearman({1}, {2}));
  CHECK_FALSE(nd::spearman({1, 1, 1}, {1, 2, 3}));
}
