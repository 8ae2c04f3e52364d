// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace nd::formats {

/// A real number spelt so that the one scalar table reads it as real: "2.0", "1.0e-05", ".inf".
[[nodiscard]] std::string typed_real(double value);

}  // namespace nd::formats
