// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nd/result.hpp"

namespace nd::core {

/// a / b, which must divide exactly (ND_CHECK).
[[nodiscard]] inline std::int64_t div_exact(std::int64_t a, std::int64_t b) {
  ND_CHECK(b != 0 && a % b == 0);
  return a / b;
}
/// a / b rounded up; b > 0, a >= 0.
[[nodiscard]] inline std::int64_t div_ceil(std::int64_t a, std::int64_t b) {
  ND_CHECK(b > 0 && a >= 0);
  return a / b + (a % b != 0 ? 1 : 0);
}
/// Smallest multiple of `step` that is at least `a`.
[[nodiscard]] inline std::int64_t round_up(std::int64_t a, std::int64_t step) { return div_ceil(a, step) * step; }
/// All positive divisors of n > 0, ascending.
[[nodiscard]] std::vector<std::int64_t> divisors(std::int64_t n);
/// a * b, nullopt when it does not fit in 63 bits.
[[nodiscard]] std::optional<std::int64_t> multiply(std::int64_t a, std::int64_t b);

}  // namespace nd::core
