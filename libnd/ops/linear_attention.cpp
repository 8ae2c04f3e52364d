// SPDX-License-Identifier: Apache-2.0
#include "ops/table.hpp"

namespace nd::ops {

// Gated delta rule with a short convolution (Yang et al., arXiv 2412.06464; layer of Qwen3-Next).
// K = key heads * key width, W = value heads * value width, v_n value heads, w value width, C chunk of the kernel.
// Parameters: h(2K + 2W) for q, k, v and the gate z; 2 h v_n for the two per-head gates; conv * (2K + W); 2 v_n decay and time-step
// terms; w of the output norm; W h out. Everything is split over tp by heads except the norm.
// Core, chunked form (arXiv 2406.06484, section 3.2), FLOPs per token and value head: products inside the chunk
// 2C(3k + 2w), state update and read 6kw.
// Saved: what the convolution reads (2K + W), its outputs with q and k repeated to the value heads, z, core output, normed
// output, gates in fp32, and the C x C triangular inverse per head and chunk.
void add_gated_delta(const OpContext& c, LedgerBuilder& out) {
  constexpr double kChunk = 64;  // tokens, chunk length of the published kernels
  const AttentionSpec& a = c.attention();
  const double key_width = static_cast<double>(a.linear_key_dim), value_width = static_cast<double>(a.linear_value_dim);
  const double value_heads = static_cast<double>(a.linear_value_heads);
  const double keys = static_cast<double>(a.linear_key_heads) * key_width, values = value_heads * value_width;
  const double mixed = 2.0 * keys + values;  // q, k, v: what the convolution mixes

  out.parameters({.op = "linear qkvz", .sharding = ParameterClass::tensor, .elements = c.hidden * (mixed + values), .divisor = c.t});
  out.parameters({.op = "linear gates", .sharding = ParameterClass::tensor, .elements = 2.0 * c.hidden * value_heads, .divisor = c.t});
  out.parameters({.op = "linear conv", .sharding = ParameterClass::tensor, .elements = static_cast<double>(a.conv_kernel) * mixed,
                  .divisor = c.t, .matrix = false});
  out.parameters({.op = "linear decay", .sharding = ParameterClass::tensor, .elements = 2.0 * value_heads, .divisor = c.t,
                  .matrix = false, .tensors = 2});
  out.parameters({.op = "linear norm", .elements = value_width, .matrix = false});
  out.parameters({.op = "linear out", .sharding = ParameterClass::tensor, .elements = values * c.hidden, .divisor = c.t});

  out.gemm({.op = "linear qkvz", .m = c.tokens, .n = (mixed + values) / c.t, .k = c.hidden});
  out.gemm({.op = "linear gates", .m = c.tokens, .n = 2.0 * value_heads / c.t, .k = c.hidden});
  out.gemm({.op = "linear out", .m = c.tokens, .n = c.hidden, .k = values / c.t});

  AttentionWork work;
  work.op = "gated delta";
  work.qk_dim = key_width;
  work.v_dim = value_width;
  work.context = kChunk;
  work.flops_forward = c.tokens * value_heads / c.t *
                       (2.0 * kChunk * (3.0 * key_width + 2.0 * value_width) + 6.0 * key_width * value_width);
  work.flops_full = work.flops_forward;
  out.attention(work, Selective::keep);

  const double per_element = c.tokens * c.width / c.t;
  out.saved("gated delta", "conv inputs", mixed * per_element);
  out.saved("gated delta", "q, k, v", (2.0 * value_heads * key_width + values) * per_element);
  out.saved("gated delta", "output gate", values * per_element);
  out.saved("gated delta", "core output", values * per_element);
  out.saved("gated delta", "normed output", values * per_element);
  constexpr double kGateBytes = 4;  // fp32
  out.saved("gated delta", "gates", 2.0 * value_heads * kGateBytes * c.tokens / c.t);
  out.saved("gated delta", "chunk inverse", kChunk * value_heads * per_element);
  out.stream("short convolution", 3.0 * mixed * per_element);
  out.stream("gated norm", 3.0 * values * per_element);

  if (c.shape.cp > 1) {
    // The recurrence needs whole sequences: heads are exchanged for tokens and back.
    out.collective({.op = "tokens to heads", .kind = CollectiveKind::all_to_all, .group = GroupKind::cp, .bytes = mixed * per_element});
    out.collective({.op = "heads to tokens", .kind = CollectiveKind::all_to_all, .group = GroupKind::cp, .bytes = values * per_element});
  }
  add_tensor_parallel_pair(c, out, "linear attention", c.hidden_bytes());
}

}  // namespace nd::ops
