// SPDX-License-Identifier: Apache-2.0
#include "core/integer.hpp"

#include <algorithm>

namespace nd::core {

std::vector<std::int64_t> divisors(std::int64_t n) {
  ND_CHECK(n > 0);
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::optional<std::int64_t> multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace nd::core
