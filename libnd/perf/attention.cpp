// SPDX-License-Identifier: Apache-2.0
#include "perf/attention.hpp"

#include <algorithm>

namespace nd::perf {

namespace {

constexpr double kFullHead = 128;  ///< elements; the width the kernels are built for
/// Share of a 128-wide head's time that goes into its scores (exponentials, maxima), whatever the width: a 64-wide head has half
/// the products for the same scores and runs at 0.8 of the rate [fitted].
constexpr double kScoreShare = 0.25;
/// Unfused traffic in bytes per score element, counted from the kernels' operands at 16 bit. Forward: scores written 2, softmax 4,
/// probabilities read by the second product 2. Backward: gradient written 2, softmax 6, read by both products 4, probabilities 2.
/// Dropout with a one-byte mask: 5 each way. 0.93 of all that is seen [fitted].
constexpr double kScoreTraffic = 0.93;
constexpr double kScoreBytesForward = 8, kScoreBytesBackward = 14, kDropoutBytes = 5;
/// Unfused backward: four products of the size of the forward's two; nothing is made again.
constexpr double kUnfusedBackwardRatio = 2;

double score_seconds(const DeviceRates& rates, const AttentionWork& work, double bytes) {
  return kScoreTraffic * (bytes + (rates.attention_dropout ? kDropoutBytes : 0.0)) * work.score_elements / rates.stream;
}

/// Seconds of the two unfused products on the whole square. Their tiles are cut for full heads: a narrower one leaves part idle.
double square_seconds(const DeviceRates& rates, const AttentionWork& work) {
  return work.flops_full / rates.unfused_attention_flops * (kFullHead / std::clamp(work.qk_dim, 1.0, kFullHead));
}

double fused_rate(const DeviceRates& rates, const AttentionWork& work) {
  const double saturation = work.context > 0 ? work.context / (work.context + rates.attention_half_length) : 1.0;
  const double width = std::clamp(work.qk_dim, 1.0, kFullHead);
  return rates.attention_flops * saturation / (1.0 + kScoreShare * (kFullHead / width - 1.0));
}

}  // namespace

double attention_forward_seconds(const DeviceRates& rates, const AttentionWork& work) {
  if (work.flops_forward <= 0) return 0;
  if (rates.fused_attention) return work.flops_forward / fused_rate(rates, work);
  return square_seconds(rates, work) + score_seconds(rates, work, kScoreBytesForward);
}

double attention_backward_seconds(const DeviceRates& rates, const AttentionWork& work) {
  if (work.flops_forward <= 0) return 0;
  if (rates.fused_attention)
    return work.flops_forward * work.backward_ratio / (fused_rate(rates, work) * rates.attention_backward_ratio);
  return kUnfusedBackwardRatio * square_seconds(rates, work) + score_seconds(rates, work, kScoreBytesBackward);
}

}  // namespace nd::perf
