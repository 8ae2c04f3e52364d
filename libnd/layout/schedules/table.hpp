// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "layout/schedules/row.hpp"

namespace nd::layout {

/// All schedules, in the order of the enumeration.
[[nodiscard]] std::span<const ScheduleRow> schedule_table();
[[nodiscard]] const ScheduleRow& schedule_row(Schedule schedule);

}  // namespace nd::layout
