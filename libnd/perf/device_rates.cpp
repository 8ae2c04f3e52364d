// SPDX-License-Identifier: Apache-2.0
#include "perf/device_rates.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace nd::perf {

namespace {

/// Unfused attention is batched small products: 0.75 of what a large product reaches [fitted on Megatron rows of 2020-2022].
constexpr double kUnfusedShare = 0.75;

double first_known(const DeviceType& device, std::span<const Dtype> order) {
  for (const Dtype dtype : order) {
    const double peak = device.peak[static_cast<std::size_t>(dtype)].value;
    if (peak > 0) return peak;
  }
  return 0;
}

/// Share of the 16-bit peak of the framework's attention kernel. A kernel the device has no figure for is one it cannot
/// run: the framework then takes the best the device has. A device without any figure runs attention as plain products.
double attention_share(const ComputeModel& compute, const std::string& kernel) {
  if (const auto known = compute.attention_fraction.find(kernel); known != compute.attention_fraction.end()) return known->second;
  double best = 0;
  for (const auto& [name, share] : compute.attention_fraction) best = std::max(best, share);
  return best > 0 ? best : compute.gemm_fraction;
}

/// Peak of the recipe: only a share of the extra low-precision peak is realised; the rest goes to casts, scales and the
/// products left in 16 bit.
double recipe_peak(const DeviceType& device, const ResolvedRun& run, double wide) {
  const double low = peak_flops(device, run.gemm_dtype);
  const ComputeModel& compute = device.compute;
  switch (run.gemm_dtype) {
    case Dtype::fp8:
      return wide + std::max(0.0, low - wide) * compute.low_precision_share;
    case Dtype::fp4:
      return wide + std::max(0.0, low - wide) * compute.fp4_share;
    default:
      return low;
  }
}

}  // namespace

double peak_flops(const DeviceType& device, Dtype dtype) {
  using enum Dtype;
  switch (dtype) {
    case fp4: {
      static constexpr std::array order{fp4, fp8, bf16, fp16, tf32, fp32};
      return first_known(device, order);
    }
    case fp8: {
      static constexpr std::array order{fp8, bf16, fp16, tf32, fp32};
      return first_known(device, order);
    }
    case bf16: {
      static constexpr std::array order{bf16, fp16, tf32, fp32};
      return first_known(device, order);
    }
    case fp16: {
      static constexpr std::array order{fp16, bf16, tf32, fp32};
      return first_known(device, order);
    }
    case tf32: {
      static constexpr std::array order{tf32, fp32};
      return first_known(device, order);
    }
    case fp32:
      break;
  }
  return device.peak[static_cast<std::size_t>(fp32)].value;
}

DeviceRates device_rates(const Scenario& scenario) {
  const DeviceType& device = scenario.cluster.device;
  const ComputeModel& compute = device.compute;
  const TimeProfile& time = scenario.profile.time;
  const double sustained = compute.gemm_fraction * time.library_factor;
  // fp8 and fp4 are recipes of the products, never of the rest.
  const Dtype compute_dtype = std::min(scenario.run.compute_dtype, Dtype::bf16);
  const double wide = peak_flops(device, compute_dtype);
  const double recipe = recipe_peak(device, scenario.run, wide);

  DeviceRates rates;
  rates.dense_flops = recipe * sustained;
  rates.wide_flops = wide * sustained;
  rates.expert_flops = recipe * sustained * compute.grouped_gemm_fraction;
  rates.attention_flops = wide * attention_share(compute, time.attention_kernel);
  rates.attention_backward_ratio = compute.attention_backward_ratio;
  rates.attention_half_length = compute.attention_half_length;
  rates.unfused_attention_flops = wide * compute.gemm_fraction * kUnfusedShare;
  rates.fused_attention = scenario.profile.memory.flash_attention;
  rates.attention_dropout = scenario.run.attention_dropout > 0;
  rates.memory = device.memory.bandwidth.value * compute.memory_fraction;
  rates.stream = compute.vector_bandwidth ? compute.vector_bandwidth->value : rates.memory;
  rates.operand_exposure = compute.operand_exposure;
  rates.misaligned_factor = 1.0 + compute.misaligned_penalty;
  rates.alignment = std::max<std::int64_t>(1, compute.alignment);
  rates.tile_m = std::max<std::int64_t>(1, compute.tile_m);
  rates.tile_n = std::max<std::int64_t>(1, compute.tile_n);
  rates.cores = std::max<std::int64_t>(1, compute.cores);
  rates.traffic_factor = time.traffic_factor;
  rates.routed_factor = time.traffic_factor * time.moe_traffic_factor;
  return rates;
}

}  // namespace nd::perf
