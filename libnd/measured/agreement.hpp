// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "nd/compare.hpp"

namespace nd::measured {

/// Columns that a compared part is measured in.
[[nodiscard]] std::vector<MeasuredColumn> columns_of(ComparedPart part);
/// Statistics of the priced rows.
void fill_agreement(Comparison& comparison);

struct FingerprintOrder {
  bool operator()(const PriceFingerprint& a, const PriceFingerprint& b) const;
};
/// Members in which all agree; "" where they do not.
[[nodiscard]] PriceFingerprint common_fingerprint(const std::vector<PriceFingerprint>& prints);

}  // namespace nd::measured
