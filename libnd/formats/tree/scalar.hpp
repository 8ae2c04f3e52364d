// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/tree/node.hpp"
#include "nd/units.hpp"

namespace nd::formats {

/// What a scalar's text is, by the one table of docs/formats/README.md (PyYAML's YAML 1.1 reading where YAML libraries differ).
enum class ScalarType { null, boolean, integer, real, string };
[[nodiscard]] ScalarType scalar_type(const ConfigNode& node);

/// nullopt when the node is not of that type or the number does not fit. Integers accept 1_000, 0x10, 010 (octal) and reals
/// that are whole (2.0, 1.0e3); reals accept integers and what PyYAML leaves a string although it reads as a number (1e-5).
/// Infinity and NaN are no numbers here. Quoted scalars are strings only.
[[nodiscard]] std::optional<std::int64_t> as_integer(const ConfigNode& node);
[[nodiscard]] std::optional<double> as_real(const ConfigNode& node);
[[nodiscard]] std::optional<bool> as_boolean(const ConfigNode& node);
[[nodiscard]] std::optional<std::string> as_string(const ConfigNode& node);

/// What a node is, for messages: "'abc' (a string)", "a list", "nothing".
[[nodiscard]] std::string describe(const ConfigNode& node);

/// "64 GiB", "50 GB/s", "353.9 TFLOP/s", "5 us", "200 Gbit/s": a figure with a unit in our own files (GB = 1e9, GiB = 2^30).
/// The unit decides the type; nullopt for another dimension, an unknown or missing unit, a negative amount.
/// Units: B kB KB MB GB TB KiB MiB GiB TiB; the same and bit kbit Mbit Gbit Tbit with /s; FLOP/s with k M G T P E; ns us ms s min h.
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);
[[nodiscard]] std::optional<BytesPerSecond> parse_bandwidth(std::string_view text);
[[nodiscard]] std::optional<FlopsPerSecond> parse_rate(std::string_view text);
[[nodiscard]] std::optional<Seconds> parse_seconds(std::string_view text);

/// Shortest text that reads back to the same double.
[[nodiscard]] std::string number_text(double value);

}  // namespace nd::formats
