// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nd/parallel_config.hpp"
#include "nd/search.hpp"
#include "nd/study.hpp"

namespace nd::report {

/// "dp=8 tp=4 pp=2 mbs=1 mb=16 recompute=full": what differs from a strategy of ones, in the spelling of --set.
[[nodiscard]] std::string short_strategy(const ParallelConfig& config);
/// "45.4 of 60.3 GiB  75 %".
[[nodiscard]] std::string memory_cell(const MemoryBreakdown& memory);
/// "lacks 12.3 GiB, largest part activations 40.1 GiB on stage 0".
[[nodiscard]] std::string shortage(const MemoryBreakdown& memory, std::string_view largest_part, Bytes largest);
/// What people call a baseline.
[[nodiscard]] std::string_view baseline_title(Baseline::Kind kind);
/// The dimensions in the order in which people name them.
[[nodiscard]] std::span<const Dimension> reading_order();
/// What a baseline faster than the winner means: the request left it out.
inline constexpr std::string_view kOutsideRequest = "faster than rank 1, but outside the conditions of this request";
/// "+3.2 %", "-1.0 %" of a ratio minus one.
[[nodiscard]] std::string signed_percent(double relative);

}  // namespace nd::report
