// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "nd/scenario.hpp"
#include "nd/units.hpp"

namespace nd {

/// Parts of a step, in the order of every report.
enum class TimePart {
  fw_compute, bw_compute, recompute, tp_comm, cp_comm, ep_comm, dp_comm, dp_reduce, pp_comm, bubble, optimizer, other
};
inline constexpr std::size_t kTimePartCount = 12;
/// "FW_COMPUTE", ...
[[nodiscard]] std::string_view to_text(TimePart part);

/// Seconds of one step. Exposed parts sum to `step`; hidden ones ran behind something else.
struct TimeBreakdown {
  std::array<Seconds, kTimePartCount> exposed{}, hidden{};
  Seconds step{};
  [[nodiscard]] Seconds part(TimePart which) const { return exposed[static_cast<std::size_t>(which)]; }
  /// The part with the largest exposed time.
  [[nodiscard]] TimePart bound_by() const;
};

/// Seconds per training step. Precondition: the strategy is legal for the scenario. Pure; thread-safe.
[[nodiscard]] TimeBreakdown estimate_time(const Scenario& scenario, const ParallelConfig& config);

}  // namespace nd
