// SPDX-License-Identifier: Apache-2.0
#include "nd/perf.hpp"

#include <algorithm>
#include <array>

namespace nd {

namespace {

constexpr std::array<std::string_view, kTimePartCount> kPartNames{"FW_COMPUTE", "BW_COMPUTE", "RECOMPUTE", "TP_COMM",
                                                                  "CP_COMM",    "EP_COMM",    "DP_COMM",   "DP_REDUCE",
                                                                  "PP_COMM",    "BUBBLE",     "OPTIMIZER", "OTHER"};

}  // namespace

std::string_view to_text(TimePart part) { return kPartNames[static_cast<std::size_t>(part)]; }

TimePart TimeBreakdown::bound_by() const {
  return static_cast<TimePart>(std::max_element(exposed.begin(), exposed.end()) - exposed.begin());
}

}  // namespace nd
