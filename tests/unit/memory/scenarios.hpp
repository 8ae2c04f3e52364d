// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nd/memory.hpp"
#include "nd/scenario.hpp"

namespace nd::test {

/// Widths of a decoder; attention heads of hidden / heads elements.
struct Decoder {
  std::int64_t hidden = 1024, layers = 8, heads = 16, kv_heads = 16, ffn = 4096, vocab = 32000;
  bool gated = true, tied = false, norm_bias = false;
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
};
struct Experts {
  std::int64_t count = 8, per_token = 2, width = 4096, shared = 0, shared_width = 0, dense_layers = 0;
};

[[nodiscard]] ResolvedModel decoder(const Decoder& d);
[[nodiscard]] ResolvedModel mixture(const Decoder& d, const Experts& e);
/// DeepSeek-V3 widths with `layers` layers of which the first is dense; MTP depth as given.
[[nodiscard]] ResolvedModel deepseek(std::int64_t layers, std::int64_t mtp_depth);

/// A model under a profile with every overhead at zero: what is left is arithmetic. Budget 80 GiB.
[[nodiscard]] Scenario bare_scenario(ResolvedModel model, std::int64_t seq_length);

/// Elements of a dense decoder by hand: layer = h*(a + 2g)*d + a*d*h + 3hf or 2hf + 2h.
[[nodiscard]] double layer_elements(const Decoder& d);

/// GiB the framework's counter would show on a stage.
[[nodiscard]] double allocated_gib(const MemoryBreakdown& memory, int stage);

}  // namespace nd::test
