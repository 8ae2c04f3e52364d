// SPDX-License-Identifier: Apache-2.0
#include "ops/table.hpp"

namespace nd {

// Multi-token prediction block (DeepSeek-V3, arXiv 2412.19437, section 2.2): the next token's embedding and the hidden states
// are normed, joined (2h) and projected to h, then one layer; its own final norm. Parameters 2*h*h + 3h + a layer.
// What the final norm and the shared head save and compute is head_ledger's with own_table = false.
LayerLedger mtp_ledger(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile, const LayerShape& shape) {
  const LayerKind& kind = model.kinds[static_cast<std::size_t>(model.mtp_kind)];
  const ops::OpContext c(model, kind, run, profile, shape);
  ops::LedgerBuilder out;
  ops::add_layer(c, out);
  const double unit = c.hidden_bytes();
  out.parameters({.op = "mtp projection", .sharding = ParameterClass::tensor, .elements = 2.0 * c.hidden * c.hidden, .divisor = c.t});
  const double norm_tensors = kind.norm_bias ? 2.0 : 1.0;
  out.parameters({.op = "mtp norms", .elements = 3.0 * c.hidden * norm_tensors, .matrix = false, .tensors = 3.0 * norm_tensors});
  out.gemm({.op = "mtp projection", .m = c.tokens, .n = c.hidden / c.t, .k = 2.0 * c.hidden});
  out.saved("mtp", "norm inputs", 2.0 * unit / c.sigma);
  out.saved("mtp", "projection input", 2.0 * unit / c.norm_output_divisor());
  out.stream("mtp norms", 4.0 * unit / c.sigma);
  // Under full recompute both inputs of the block are kept.
  out.layer_input(2.0 * unit / (profile.memory.recompute_keeps_layer_input_sharded ? c.sigma : 1.0));
  if (shape.tp > 1) {
    const bool sharded = shape.sequence_parallel;
    out.collective({.op = "mtp projection", .kind = sharded ? CollectiveKind::all_gather : CollectiveKind::all_reduce,
                    .group = GroupKind::tp, .bytes = 2.0 * unit, .forward = sharded ? 1.0 : 0.0, .backward = sharded ? 0.0 : 1.0});
    if (sharded)
      out.collective({.op = "mtp projection", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::tp, .bytes = 2.0 * unit,
                      .forward = 0});
    out.collective({.op = "mtp output", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = unit, .backward = 0});
  }
  return std::move(out).take();
}

}  // namespace nd
