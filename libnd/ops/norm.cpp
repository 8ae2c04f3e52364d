// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/table.hpp"

namespace nd::ops {

// Saved: input and output of each norm in front of a sub-layer, 2h bytes each (Korthikanti et al. 2022, section 4.1: 4sbh for
// the two norm inputs, 2sbh + 2sbh for the inputs of attention and feed-forward); of a norm behind a sub-layer only its input,
// since the residual addition needs nothing. Dropout masks: 1 byte per element behind each sub-layer.
// Moved, per token: norm 4h (read, write), residual addition 6h (two reads, a write), bias and dropout h per sub-layer; a plain
// layer of two sub-layers: 22h (fitted as a whole, docs/cost_model_ops.md#streams).
void add_norms(const OpContext& c, LedgerBuilder& out) {
  const double norms = static_cast<double>(c.kind.norms);
  const double sub_layers = (c.attention().kind != AttentionKind::none ? 1.0 : 0.0) + (c.ffn().kind != FfnKind::none ? 1.0 : 0.0);
  const double before = std::min(norms, sub_layers);
  const double behind = norms - before;
  const bool parallel = c.kind.parallel_residual;
  out.parameters({.op = "norms", .elements = norms * c.hidden * (c.kind.norm_bias ? 2.0 : 1.0), .matrix = false,
                  .tensors = std::max(1.0, norms * (c.kind.norm_bias ? 2.0 : 1.0))});

  const Selective again = c.memory().selective_drops_norm ? Selective::again : Selective::keep;
  const double unit = c.hidden_bytes();
  // Side by side, both sub-layers read the same input; without a norm a sub-layer still keeps its own input.
  const double inputs = parallel ? 1.0 : sub_layers;
  out.saved("norms", "norm inputs", inputs * unit / c.sigma);
  out.saved("norms", "norm outputs", before * unit / c.norm_output_divisor(), again);
  out.saved("norms", "output norm inputs", behind * unit / c.sigma);
  if (c.run.hidden_dropout > 0) out.saved("norms", "dropout masks", sub_layers * c.tokens * c.hidden / c.sigma);

  out.stream("norms", norms * 2.0 * unit / c.sigma, again);
  const double residual = parallel ? 4.0 : 3.0 * sub_layers;  // in units of one copy of the hidden states
  out.stream("residual", (residual + 0.5 * sub_layers) * unit / c.sigma);
  out.working_set(c.memory().layer_working_set_hidden * c.width_scale * c.tokens * c.hidden);
}

}  // namespace nd::ops
