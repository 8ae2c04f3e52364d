// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/table.hpp"

namespace nd::ops {
namespace {

/// Widths of the query, key and value parts on one rank, elements per token.
struct LocalWidths {
  double query, key, value, output;
};

LocalWidths local_widths(const OpContext& c) {
  const AttentionSpec& a = c.attention();
  const double qk = static_cast<double>(a.qk_dim), v = static_cast<double>(a.v_dim);
  return {c.heads_local() * qk, c.kv_heads_local() * qk, c.kv_heads_local() * v, c.heads_local() * v};
}

}  // namespace

// Parameters 2*h*a*d + 2*h*g*d over tp (plus the gate's h*a*d); biases of q, k, v are split, the output bias is not. KV heads
// are replicated when there are fewer than ranks.
// Saved per token: Q 2ad, K and V 4gd, output 2ad, over tp; a gate keeps itself and the gated output too.
// Moved: rotation and layout changes, 6 bytes per element of Q, K, V (docs/cost_model_ops.md#streams).
void add_attention_projections(const OpContext& c, LedgerBuilder& out) {
  const AttentionSpec& a = c.attention();
  const LocalWidths local = local_widths(c);
  const double qk = static_cast<double>(a.qk_dim), v = static_cast<double>(a.v_dim);
  const double queries = static_cast<double>(a.heads) * qk, values = static_cast<double>(a.heads) * v;
  const double keys_values = static_cast<double>(a.kv_heads) * (qk + v);
  const double gate = a.output_gate ? values : 0.0;
  const double columns = queries + gate + keys_values;
  const double local_columns = local.query + gate / c.t + local.key + local.value;

  const double shard = columns / local_columns;
  out.parameters({.op = "attention qkv", .sharding = ParameterClass::tensor, .elements = c.hidden * columns, .divisor = shard});
  out.parameters({.op = "attention out", .sharding = ParameterClass::tensor, .elements = c.hidden * values, .divisor = c.t});
  if (a.qkv_bias)
    out.parameters({.op = "attention qkv bias", .sharding = ParameterClass::tensor, .elements = queries + keys_values,
                    .divisor = (queries + keys_values) / (local_columns - gate / c.t), .matrix = false});
  if (a.output_bias) out.parameters({.op = "attention out bias", .elements = c.hidden, .matrix = false});
  if (a.sinks)
    out.parameters({.op = "attention sinks", .sharding = ParameterClass::tensor, .elements = static_cast<double>(a.heads),
                    .divisor = c.t, .matrix = false});

  out.gemm({.op = "attention qkv", .m = c.tokens, .n = local_columns, .k = c.hidden});
  out.gemm({.op = "attention out", .m = c.tokens, .n = c.hidden, .k = local.output});

  const double per_element = c.tokens * c.width;
  out.saved("attention", "q", local.query * per_element);
  const bool half = c.memory().selective_every_second_product;  // of the projections of Q, K, V and the output K's is the second
  if (half) {
    out.saved("attention", "k", local.key * per_element, Selective::again);
    out.saved("attention", "v", local.value * per_element);
  } else {
    out.saved("attention", "k and v", (local.key + local.value) * per_element);
  }
  if (a.output_gate) {
    out.saved("attention", "output gate", local.output * per_element);
    out.saved("attention", "gated output", local.output * per_element);
    out.stream("output gate", 3.0 * local.output * per_element);  // reads gate and output, writes the product
  }
  out.stream("rotary and layout", 3.0 * (local.query + local.key + local.value) * per_element);
  if (c.memory().rotary_copies)
    out.saved("attention", "rotated copies", (local.query + local.key) * per_element, half ? Selective::again : Selective::keep);
  if (!c.kind.parallel_residual || c.ffn().kind == FfnKind::none) add_tensor_parallel_pair(c, out, "attention", c.hidden_bytes());
}

// One weight of the head width for queries and one for keys; the norm keeps its input, since the rotated result is another tensor.
void add_qk_norm(const OpContext& c, LedgerBuilder& out) {
  const LocalWidths local = local_widths(c);
  out.parameters({.op = "qk norm", .elements = 2.0 * static_cast<double>(c.attention().qk_dim), .matrix = false, .tensors = 2});
  out.saved("qk norm", "norm inputs", (local.query + local.key) * c.tokens * c.width);
  out.stream("qk norm", 2.0 * (local.query + local.key) * c.tokens * c.width);
}

// Scores and weighted sum: 2*T*s*(a/t)*(d_qk + d_v) FLOPs over the full square; causal kernels do half of it, and of a window W < s
// the share 2W(1 - W/(2s))/s of that half. Backward 2.5 times (five products for two).
// Saved with a fused kernel: output and per head and token the softmax statistics. Unfused (Korthikanti et al. 2022): 2as of
// probabilities, with dropout the dropped copy (2) and its mask (1) as well.
void add_attention_core(const OpContext& c, LedgerBuilder& out) {
  const AttentionSpec& a = c.attention();
  const LocalWidths local = local_widths(c);
  const double sequence = static_cast<double>(c.shape.seq_length);
  const double window = a.window > 0 ? std::min(static_cast<double>(a.window), sequence) : sequence;
  const double scores = c.heads_local() * c.tokens * sequence;

  AttentionWork work;
  work.op = "attention";
  work.qk_dim = static_cast<double>(a.qk_dim);
  work.v_dim = static_cast<double>(a.v_dim);
  work.score_elements = scores;
  work.flops_full = 2.0 * scores * (work.qk_dim + work.v_dim);
  const double share = window < sequence ? 2.0 * window * (1.0 - window / (2.0 * sequence)) / sequence : 1.0;
  work.flops_forward = 0.5 * share * work.flops_full;
  work.context = window;
  const Selective again = c.memory().selective_drops_attention ? Selective::again : Selective::keep;
  out.attention(work, again);

  out.saved("attention", "output", local.output * c.tokens * c.width);
  if (c.memory().flash_attention) {
    out.saved("attention", "softmax statistics", c.memory().softmax_statistics_bytes * c.heads_local() * c.tokens, again);
  } else {
    out.saved("attention", "probabilities", c.width * scores, again);
    if (c.run.attention_dropout > 0) {
      out.saved("attention", "dropped probabilities", c.width * scores, again);
      out.saved("attention", "attention dropout mask", scores, again);
    }
  }
}

// Ring: c-1 blocks of K and V pass by, in the backward also their gradients; two blocks of each are in flight.
// All-gather: K and V gathered in both passes, gradients scattered back; the gathered copy is alive in the backward.
// Ulysses: Q, K, V change from tokens to heads and the output back; KV heads below the degree are replicated.
void add_context_parallel(const OpContext& c, LedgerBuilder& out) {
  const double degree = c.shape.cp;
  if (c.shape.cp == 1) return;
  const LocalWidths local = local_widths(c);
  const double block = c.tokens * c.width * (local.key + local.value);
  switch (c.shape.cp_algorithm) {
    case CpAlgorithm::ring:
      out.collective({.op = "ring attention", .kind = CollectiveKind::send_receive, .group = GroupKind::cp, .bytes = block,
                      .forward = degree - 1.0, .backward = 2.0 * (degree - 1.0)});
      out.working_set(4.0 * block);
      break;
    case CpAlgorithm::all_gather:
      out.collective({.op = "gather k and v", .kind = CollectiveKind::all_gather, .group = GroupKind::cp, .bytes = degree * block});
      out.collective({.op = "scatter k and v gradients", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::cp,
                      .bytes = degree * block, .forward = 0, .backward = 1});
      out.working_set(2.0 * degree * block);
      break;
    case CpAlgorithm::ulysses: {
      const double copies = std::max(1.0, degree / c.kv_heads_local());
      const double inputs = c.tokens * c.width * local.query + copies * block;
      out.collective({.op = "tokens to heads", .kind = CollectiveKind::all_to_all, .group = GroupKind::cp, .bytes = inputs});
      out.collective({.op = "heads to tokens", .kind = CollectiveKind::all_to_all, .group = GroupKind::cp,
                      .bytes = c.tokens * c.width * local.output});
      break;
    }
  }
}

}  // namespace nd::ops
