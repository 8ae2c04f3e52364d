// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nd/units.hpp"

namespace nd::measured {

/// Suffix of a column name and the base units in one of its own.
struct UnitSuffix {
  std::string_view suffix;
  double factor = 1;
};
inline constexpr std::array<UnitSuffix, 3> kTimeUnits{{{"_ms", 1e-3}, {"_us", 1e-6}, {"_s", 1.0}}};
inline constexpr std::array<UnitSuffix, 7> kMemoryUnits{
    {{"_gib", kGiB}, {"_mib", kMiB}, {"_gb", kGB}, {"_mb", 1e6}, {"_kib", 1024.0}, {"_in_bytes", 1.0}, {"_bytes", 1.0}}};

struct UnitColumn {
  std::string base;
  double factor = 1;
};
/// A column name without its unit; `bare` is the factor of a name without one, 0 = it needs one (then nullopt).
[[nodiscard]] std::optional<UnitColumn> split_unit(std::string_view name, std::span<const UnitSuffix> units, double bare);

}  // namespace nd::measured
