// SPDX-License-Identifier: Apache-2.0
#include "perf/attention.hpp"

namespace nd::perf {

namespace {

constexpr double kNarrowHead = 100;     ///< elements; kernels below it (64, 80, 96) fill the matrix unit less
constexpr double kNarrowHeadRate = 0.8; ///< of the rate of 128-wide heads [fitted]
/// Unfused traffic in bytes per score element: forward scale-mask-softmax and dropout with a one-byte mask (11) and the
/// write of the scores (2); backward of the same. Counted from the kernels' operands at 16 bit; 0.93 of it is seen [fitted].
constexpr double kScoreTraffic = 0.93;
constexpr double kScoreBytesForward = 13 * kScoreTraffic, kScoreBytesBackward = 19 * kScoreTraffic;
/// Unfused backward: four products of the size of the forward's two; nothing is made again.
constexpr double kUnfusedBackwardRatio = 2;

double fused_rate(const DeviceRates& rates, const AttentionWork& work) {
  const double saturation = work.context > 0 ? work.context / (work.context + rates.attention_half_length) : 1.0;
  return rates.attention_flops * saturation * (work.qk_dim < kNarrowHead ? kNarrowHeadRate : 1.0);
}

}  // namespace

double attention_forward_seconds(const DeviceRates& rates, const AttentionWork& work) {
  if (work.flops_forward <= 0) return 0;
  if (rates.fused_attention) return work.flops_forward / fused_rate(rates, work);
  return work.flops_full / rates.unfused_attention_flops + kScoreBytesForward * work.score_elements / rates.stream;
}

double attention_backward_seconds(const DeviceRates& rates, const AttentionWork& work) {
  if (work.flops_forward <= 0) return 0;
  if (rates.fused_attention)
    return work.flops_forward * work.backward_ratio / (fused_rate(rates, work) * rates.attention_backward_ratio);
  return kUnfusedBackwardRatio * work.flops_full / rates.unfused_attention_flops +
         kScoreBytesBackward * work.score_elements / rates.stream;
}

}  // namespace nd::perf
