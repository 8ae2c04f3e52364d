// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "layout/replay.hpp"
#include "layout/schedules/table.hpp"

namespace nd::test {

/// Times of every stage and chunk, all equal.
inline std::vector<PassTimes> equal_times(const layout::ScheduleRow& row, const ScheduleShape& shape,
                                          const layout::UniformTimes& t) {
  const auto count = static_cast<std::size_t>(shape.stages) * static_cast<std::size_t>(row.local_chunks(shape));
  return std::vector<PassTimes>(
      count,
      PassTimes{{t.forward}, {t.backward_input}, {t.backward_weight}, {0.0}, {t.forward + t.backward() - t.joined}});
}

/// Calls body(shape) for every legal shape of a schedule with p <= 16, v <= 4, m <= 64.
template <class Body>
void for_each_shape(const layout::ScheduleRow& row, Body&& body) {
  for (int p = 1; p <= 16; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 64; ++m)
        for (const int parts : {1, 4}) {
          const ScheduleShape shape{p, v, m, parts, 0};
          if (!layout::why_invalid(row, shape)) body(shape);
        }
}

}  // namespace nd::test
