// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/table.hpp"

namespace nd::ops {

// Gated: gate, up and product 2 bytes each; an eager SiLU adds its own result. Plain: input and output of the activation.
// The last product is what the down-projection reads; all but the plain inputs can be made again from them.
ActivationBytes activation_bytes(const OpContext& c) {
  const double all = (c.ffn().gated ? c.memory().swiglu_bytes : c.memory().gelu_bytes) * c.width_scale;
  const double inputs = std::min(all, (c.ffn().gated ? 2.0 : 1.0) * c.width);
  return {inputs, all - inputs};
}

// Without a gate there are two instead of three matrices, so 4 of the 6 bytes.
double ffn_working_set(const OpContext& c, double columns) {
  const double per_column = c.memory().layer_working_set_ffn * c.width_scale * (c.ffn().gated ? 1.0 : 4.0 / 6.0);
  return per_column * columns * c.tokens / c.t;
}

void save_activation(const OpContext& c, LedgerBuilder& out, std::string_view op, double columns) {
  const Selective again = c.memory().selective_drops_activation ? Selective::again : Selective::keep;
  const ActivationBytes saved = activation_bytes(c);
  // Where every second product runs again, of gate and up the second is.
  const bool half = c.ffn().gated && c.memory().selective_every_second_product;
  if (half) out.saved(op, "up", 0.5 * saved.inputs * columns, Selective::again);
  out.saved(op, half ? "gate" : "activation inputs", (half ? 0.5 : 1.0) * saved.inputs * columns);
  out.saved(op, "activation output", saved.outputs * columns, again);
}

// Parameters 3hf (gated) or 2hf over tp. FLOPs 2*T*h*f/t per matrix. Moved by the activation: 6 bytes per column (reads gate and
// up, writes the product), 4 without a gate.
void add_ffn_products(const OpContext& c, LedgerBuilder& out, const FfnProducts& products) {
  const FfnSpec& f = c.ffn();
  const double width = products.width;
  const double first = f.gated ? 2.0 * width : width;  // gate and up are one product
  out.parameters({.op = products.in, .sharding = ParameterClass::tensor, .elements = c.hidden * first, .divisor = c.t, .tensors = products.tensors});
  out.parameters({.op = products.out, .sharding = ParameterClass::tensor, .elements = width * c.hidden, .divisor = c.t, .tensors = products.tensors});
  out.gemm({.op = products.in, .m = c.tokens, .n = first / c.t, .k = c.hidden});
  out.gemm({.op = products.out, .m = c.tokens, .n = c.hidden, .k = width / c.t});

  const Selective again = c.memory().selective_drops_activation ? Selective::again : Selective::keep;
  const double columns = c.tokens * width / c.t;
  save_activation(c, out, products.block, columns);
  out.stream(products.activation, (f.gated ? 3.0 : 2.0) * c.width * columns, again);
  out.working_set(ffn_working_set(c, width));
  add_tensor_parallel_pair(c, out, products.block, c.hidden_bytes());
}

// The first bias is split over tp, the second on every rank.
void add_dense_ffn(const OpContext& c, LedgerBuilder& out) {
  const FfnSpec& f = c.ffn();
  const double width = static_cast<double>(f.width);
  add_ffn_products(c, out, {.in = "ffn in", .out = "ffn out", .block = "ffn", .activation = "ffn activation", .width = width});
  if (!f.bias) return;
  out.parameters({.op = "ffn in bias", .sharding = ParameterClass::tensor, .elements = f.gated ? 2.0 * width : width, .divisor = c.t, .matrix = false});
  out.parameters({.op = "ffn out bias", .elements = c.hidden, .matrix = false});
}

}  // namespace nd::ops
