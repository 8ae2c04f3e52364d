// SPDX-License-Identifier: Apache-2.0
#include "core/integer.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace nd::core;

TEST_CASE("exact and rounded division", "[integer]") {
  CHECK(div_exact(12, 4) == 3);
  CHECK_THROWS_AS(div_exact(13, 4), nd::InternalError);
  CHECK(div_ceil(13, 4) == 4);
  CHECK(div_ceil(12, 4) == 3);
  CHECK(round_up(50257, 128) == 50304);
}

TEST_CASE("divisors are complete and ascending", "[integer]") {
  CHECK(divisors(1) == std::vector<std::int64_t>{1});
  CHECK(divisors(36) == std::vector<std::int64_t>{1, 2, 3, 4, 6, 9, 12, 18, 36});
  for (std::int64_t n = 1; n <= 500; ++n) {
    std::vector<std::int64_t> naive;
    for (std::int64_t d = 1; d <= n; ++d)
      if (n % d == 0) naive.push_back(d);
    CHECK(divisors(n) == naive);
  }
}

TEST_CASE("products that do not fit are refused", "[integer]") {
  CHECK(multiply(1LL << 31, 1LL << 31) == std::optional<std::int64_t>(1LL << 62));
  CHECK_FALSE(multiply(1LL << 32, 1LL << 31));
  CHECK_FALSE(multiply(std::numeric_limits<std::int64_t>::max(), 2));
}
