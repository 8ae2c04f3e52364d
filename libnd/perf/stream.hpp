// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/ops.hpp"
#include "perf/device_rates.hpp"

namespace nd::perf {

/// Seconds of memory-bound work: bytes x the framework's fusion state / the rate of element-wise kernels; routed work also
/// takes the framework's permutation factor. docs/cost_model_time.md#streams
[[nodiscard]] inline double stream_seconds(const DeviceRates& rates, double bytes, bool routed) {
  return bytes * (routed ? rates.routed_factor : rates.traffic_factor) / rates.stream;
}
[[nodiscard]] inline double stream_forward_seconds(const DeviceRates& rates, const StreamWork& work) {
  return stream_seconds(rates, work.bytes_forward, work.routed);
}
[[nodiscard]] inline double stream_backward_seconds(const DeviceRates& rates, const StreamWork& work) {
  return stream_seconds(rates, work.bytes_backward, work.routed);
}

}  // namespace nd::perf
