// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/ops.hpp"
#include "perf/device_rates.hpp"

namespace nd::perf {

/// Share of the cores' time that does useful work on `count` products with an m x n output: whole waves of tiles, the better
/// of the main tile and a narrow one at 0.8 of its rate. In (0, 1]. docs/cost_model_time.md#waves
[[nodiscard]] double wave_share(const DeviceRates& rates, double count, double m, double n);

/// Seconds of the forward pass of one op row: 2 count MNK / (rate w) A + kappa 2 B count (MK + KN + MN) / memory rate.
/// docs/cost_model_time.md#gemm
[[nodiscard]] double gemm_forward_seconds(const DeviceRates& rates, const Gemm& gemm);

/// Seconds of the gradient with respect to the input: m x k, inner n.
[[nodiscard]] double gemm_input_gradient_seconds(const DeviceRates& rates, const Gemm& gemm);
/// Seconds of the gradient with respect to the other factor: k x n, inner m.
[[nodiscard]] double gemm_weight_gradient_seconds(const DeviceRates& rates, const Gemm& gemm);

}  // namespace nd::perf
