// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "nd/ratios.hpp"
#include "nd/scenario.hpp"

namespace nd {

/// Digests of what a price depends on besides the strategy: equal digests, equal prices.
struct PriceFingerprint {
  std::string model, device, framework, calibration, version;
  friend bool operator==(const PriceFingerprint&, const PriceFingerprint&) = default;
};
[[nodiscard]] PriceFingerprint fingerprint(const Scenario& scenario, const PriceFactors& factors = {});

}  // namespace nd
