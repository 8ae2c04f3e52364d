// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nd/units.hpp"
#include "options.hpp"

namespace run_nd {

/// "64", "+64": a whole number that fits in 63 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
/// Digits with an optional sign, however many.
[[nodiscard]] bool only_digits(std::string_view text);
/// A finite number.
[[nodiscard]] std::optional<double> parse_real(std::string_view text);
/// A number and a unit; units are powers of 1024, as the predecessor of this program reads them.
[[nodiscard]] std::optional<nd::Bytes> parse_memory(std::string_view text);
/// "15T", "300B", "2.5e9"; suffixes k M B G T are powers of 1000.
[[nodiscard]] std::optional<Amount> parse_amount(std::string_view text);
/// "64", "64..4096", "64..512:64". The bounds are not checked.
[[nodiscard]] std::optional<DeviceCounts> parse_device_counts(std::string_view text);
/// The parts between the separators, empty ones too.
[[nodiscard]] std::vector<std::string> split(const std::string& text, char separator);

}  // namespace run_nd
