// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "nd/diagnostic.hpp"

namespace nd::traces {

/// One complete event ("ph": "X") of a Chrome trace; overwritten by the next one.
struct TraceEvent {
  std::string name, category, process, thread;
  std::string begin, duration;  ///< microseconds, as written
  double bytes = 0;             ///< of args: "In msg nelems" times the width of "dtype", else "In msg size"
};

/// Calls `event` for every complete event of a trace, one at a time; never holds more than one. The problem when the file is none.
[[nodiscard]] std::optional<Diagnostic> read_events(const std::string& path, const std::function<void(const TraceEvent&)>& event);

}  // namespace nd::traces
