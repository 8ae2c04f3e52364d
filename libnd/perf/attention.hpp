// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/ops.hpp"
#include "perf/device_rates.hpp"

namespace nd::perf {

/// Seconds of the attention core, forward. Fused: FLOPs / (rate s / (s + s0)), 1/0.8 of it for heads narrower than 100.
/// Unfused: the full square at the rate of batched products plus the traffic of the scores. docs/cost_model_time.md#attention
[[nodiscard]] double attention_forward_seconds(const DeviceRates& rates, const AttentionWork& work);
[[nodiscard]] double attention_backward_seconds(const DeviceRates& rates, const AttentionWork& work);

}  // namespace nd::perf
