// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/perf.hpp"

// Scenarios built without any file. Device and framework constants are the fitted ones of the step-time study behind
// docs/cost_model_time.md (sections "device constants" and "framework constants"), none of them belongs to a model.
namespace nd::perf_test {

[[nodiscard]] DeviceType a100();       ///< 80 GB SXM, 8 per node, 8 x 25 GB/s (HDR)
[[nodiscard]] DeviceType h100();       ///< 80 GB SXM, 8 per node, 8 x 50 GB/s
[[nodiscard]] DeviceType ascend_a2();  ///< 910B, full mesh of 8, 8 x 25 GB/s
[[nodiscard]] DeviceType nvl72();      ///< 72 devices on one switch above hosts of 4; bandwidths of GB200

/// GPT: plain feed-forward of 4h, multi-head attention, biases, dropout, learned positions, tied table.
struct GptShape {
  std::int64_t layers = 24, hidden = 2048, heads = 16, vocab = 51200, seq = 2048;
};
[[nodiscard]] ResolvedModel gpt(const GptShape& shape);
/// Llama: gated, grouped queries, no bias.
[[nodiscard]] ResolvedModel llama(std::int64_t layers, std::int64_t hidden, std::int64_t width, std::int64_t heads, std::int64_t kv_heads);
/// Every layer MoE: 64 experts of 1024, top-8, hidden 2048.
[[nodiscard]] ResolvedModel moe(std::int64_t layers);

/// Megatron-LM of 2021-22: unfused attention, data parallelism not overlapped.
[[nodiscard]] FrameworkProfile megatron_2022();
/// Neutral trainer with fused attention and every overlap at its default.
[[nodiscard]] FrameworkProfile fused_trainer();

/// The scenario of a model on `devices` devices with `seq` tokens per sequence.
[[nodiscard]] Scenario scenario_of(ResolvedModel model, DeviceType device, FrameworkProfile profile, std::int64_t devices, std::int64_t seq);

}  // namespace nd::perf_test
