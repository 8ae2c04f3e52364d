// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nd/scenario.hpp"

namespace nd::perf {

/// What the device sustains under this scenario's framework and data types: the denominators of every operator's time.
/// Derived once per scenario. Rates in FLOP/s and bytes/s. docs/cost_model_time.md#rates
struct DeviceRates {
  double dense_flops = 0;    ///< large products in the recipe's type (fp8 / fp4 shares included)
  double wide_flops = 0;     ///< products that stay in the compute type: head, router, unfused attention
  double expert_flops = 0;   ///< grouped products of the experts
  double attention_flops = 0;  ///< limit of the fused attention kernel, forward
  double attention_backward_ratio = 1;
  double attention_half_length = 0;  ///< tokens
  double unfused_attention_flops = 0;
  bool fused_attention = true;
  bool attention_dropout = false;  ///< unfused kernels only: a fused one draws its mask on the way
  double memory = 0;         ///< streaming rate of the main memory
  double stream = 0;         ///< of element-wise kernels
  double operand_exposure = 1;
  double misaligned_factor = 1;  ///< time of a misaligned product / an aligned one
  std::int64_t alignment = 1, tile_m = 128, tile_n = 256, cores = 1;
  double traffic_factor = 1, routed_factor = 1;
};

[[nodiscard]] DeviceRates device_rates(const Scenario& scenario);

/// Data-sheet peak of `dtype`; where the device does not know it, of the nearest type that can stand in (fp8 for fp4, then
/// 16 bit, then tf32 and fp32). 0 only when the device states no peak at all.
[[nodiscard]] double peak_flops(const DeviceType& device, Dtype dtype);

}  // namespace nd::perf
