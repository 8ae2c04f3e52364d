// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "nd/perf.hpp"

namespace nd::perf {

/// Seconds by part, exposed and hidden, before they become a TimeBreakdown. Plain doubles: summed per candidate.
struct PartSeconds {
  std::array<double, kTimePartCount> exposed{}, hidden{};

  [[nodiscard]] double& at(TimePart part) { return exposed[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double& hidden_at(TimePart part) { return hidden[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double at(TimePart part) const { return exposed[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double hidden_at(TimePart part) const { return hidden[static_cast<std::size_t>(part)]; }

  /// Sum of the exposed parts.
  [[nodiscard]] double total() const {
    double sum = 0;
    for (const double part : exposed) sum += part;
    return sum;
  }
  /// Adds `times` times `other`.
  void add(const PartSeconds& other, double times = 1.0) {
    for (std::size_t i = 0; i < kTimePartCount; ++i) {
      exposed[i] += times * other.exposed[i];
      hidden[i] += times * other.hidden[i];
    }
  }
};

}  // namespace nd::perf
