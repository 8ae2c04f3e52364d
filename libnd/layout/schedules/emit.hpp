// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout/schedules/row.hpp"

namespace nd::layout {

inline void emit(PassList& out, PassKind kind, int chunk, int unit, bool joined = false) {
  out.push_back(Pass{unit, static_cast<std::int16_t>(chunk), kind, joined});
}

}  // namespace nd::layout
