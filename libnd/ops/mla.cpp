// SPDX-License-Identifier: Apache-2.0
#include "ops/table.hpp"

namespace nd::ops {

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), training form: K and V are projected up.
// q, c latent widths of queries and keys/values; n, r plain and rotated width of a head; v value width; a heads.
// Parameters: down-projections h*q, h*(c + r) and the latent norms q + c on every tp rank; q*a*(n+r), c*a*(n+v), a*v*h over tp.
// Saved per token: latents before and behind their norms 4q + 4c, 2r rotated key (region of the hidden states); Q, K
// 2a(n+r) each, V 2av over tp (the output belongs to the core); the up-projected pair 2a(n+v) where the framework keeps it.
void add_mla_projections(const OpContext& c, LedgerBuilder& out) {
  const AttentionSpec& a = c.attention();
  const double q = static_cast<double>(a.q_lora_rank), latent = static_cast<double>(a.kv_lora_rank);
  const double rope = static_cast<double>(a.rope_dim), nope = static_cast<double>(a.nope_dim);
  const double value = static_cast<double>(a.v_dim), heads = static_cast<double>(a.heads);
  const double queries = heads * (nope + rope), keys_values = heads * (nope + value), outputs = heads * value;
  const bool query_latent = a.q_lora_rank > 0;

  if (query_latent) {
    out.parameters({.op = "mla q down", .elements = c.hidden * q});
    out.parameters({.op = "mla q up", .sharding = ParameterClass::tensor, .elements = q * queries, .divisor = c.t});
  } else {
    out.parameters({.op = "mla q", .sharding = ParameterClass::tensor, .elements = c.hidden * queries, .divisor = c.t});
  }
  out.parameters({.op = "mla kv down", .elements = c.hidden * (latent + rope)});
  out.parameters({.op = "mla latent norms", .elements = q + latent, .matrix = false, .tensors = query_latent ? 2.0 : 1.0});
  out.parameters({.op = "mla kv up", .sharding = ParameterClass::tensor, .elements = latent * keys_values, .divisor = c.t});
  out.parameters({.op = "attention out", .sharding = ParameterClass::tensor, .elements = outputs * c.hidden, .divisor = c.t});
  if (a.qkv_bias)
    out.parameters({.op = "mla down bias", .elements = (query_latent ? q : 0.0) + latent + rope, .matrix = false});
  if (a.output_bias) out.parameters({.op = "attention out bias", .elements = c.hidden, .matrix = false});

  const Selective again = c.memory().selective_drops_mla_up ? Selective::again : Selective::keep;
  const double own_tokens = c.tokens / c.sigma;  // the down-projections run on the sequence shard
  if (query_latent) {
    out.gemm({.op = "mla q down", .m = own_tokens, .n = q, .k = c.hidden});
    out.gemm({.op = "mla q up", .m = c.tokens, .n = queries / c.t, .k = q}, again);
  } else {
    out.gemm({.op = "mla q", .m = c.tokens, .n = queries / c.t, .k = c.hidden}, again);
  }
  out.gemm({.op = "mla kv down", .m = own_tokens, .n = latent + rope, .k = c.hidden});
  out.gemm({.op = "mla kv up", .m = c.tokens, .n = keys_values / c.t, .k = latent}, again);
  out.gemm({.op = "attention out", .m = c.tokens, .n = c.hidden, .k = outputs / c.t});

  const double per_element = c.tokens * c.width;
  out.saved("mla", "latents", (2.0 * (q + latent) + rope) * per_element / c.sigma);
  out.saved("attention", "q", queries / c.t * per_element, again);
  out.saved("attention", "k and v", (queries + outputs) / c.t * per_element, again);
  if (c.memory().mla_keeps_up_projection) out.saved("mla", "up-projected k and v", keys_values / c.t * per_element, again);

  out.stream("mla latent norms", 2.0 * (q + latent) * per_element / c.sigma);
  out.stream("rotary and layout", 3.0 * (2.0 * queries + outputs) / c.t * per_element, again);

  if (c.shape.tp == 1) return;
  // Only latents cross the tensor-parallel group on the way in; without a query latent the hidden states must.
  const double inward = (query_latent ? q + latent + rope : c.hidden + latent + rope) * per_element;
  if (!c.shape.sequence_parallel) {
    out.collective({.op = "attention", .kind = CollectiveKind::all_reduce, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .backward = 0});
    out.collective({.op = "attention", .kind = CollectiveKind::all_reduce, .group = GroupKind::tp, .bytes = inward, .forward = 0});
    return;
  }
  out.collective({.op = "mla latents", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = inward, .backward = 0});
  out.collective({.op = "mla latents", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::tp, .bytes = inward, .forward = 0});
  out.collective({.op = "attention", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .backward = 0});
  out.collective({.op = "attention", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .forward = 0});
  if (!c.memory().gathered_inputs_kept)
    out.collective({.op = "mla latents", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = inward, .forward = 0,
                    .backward = 1, .regather = true});
}

}  // namespace nd::ops
