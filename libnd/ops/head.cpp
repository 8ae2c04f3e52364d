// SPDX-License-Identifier: Apache-2.0
#include "ops/table.hpp"

namespace nd {

double logit_elements(const ResolvedModel& model, const FrameworkProfile& profile, const LayerShape& shape) {
  return shape.tokens() * static_cast<double>(padded_vocabulary(model, profile, shape.tp)) / shape.tp;
}

// Final norm, T x V/t x h product, loss. Saved: norm input and output, 4h per token. The loss moves 10 bytes per logit in all
// (forward: logits read and softmaxed in fp32 6, backward 4; docs/cost_model_ops.md#streams). Vocabulary shards agree on
// maximum, sum and the target's logit: three all-reduces of one fp32 per token.
LayerLedger head_ledger(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile, const LayerShape& shape,
                        bool own_table) {
  const ops::OpContext c = ops::outer_context(model, run, profile, shape);
  ops::LedgerBuilder out;
  const double columns = static_cast<double>(padded_vocabulary(model, profile, shape.tp)) / c.t;
  if (own_table) {
    ParameterBlock table;
    table.op = "head";
    table.sharding = ParameterClass::tensor;
    table.elements = columns * c.hidden;
    table.model_elements = table.active_elements = static_cast<double>(model.vocab_size) * c.hidden;
    table.largest_tensor = table.elements;
    table.matrix = false;
    out.finished_block(table);
  }
  if (model.final_norm) {
    out.parameters({.op = "final norm", .elements = c.hidden * (model.norm_bias ? 2.0 : 1.0), .matrix = false,
                    .tensors = model.norm_bias ? 2.0 : 1.0});
    out.always_saved("head", "final norm input", c.hidden_bytes() / c.sigma);
    out.stream("final norm", 2.0 * c.hidden_bytes() / c.sigma);
  }
  out.always_saved("head", "head input", c.hidden_bytes() / c.norm_output_divisor());
  out.gemm({.op = "head", .kind = GemmClass::head, .m = c.tokens, .n = columns, .k = c.hidden});
  StreamWork loss;
  loss.op = "loss";
  loss.bytes_forward = 6.0 * c.tokens * columns;
  loss.bytes_backward = 4.0 * c.tokens * columns;
  out.finished_stream(loss);

  if (shape.tp == 1) return std::move(out).take();
  constexpr double kStatisticBytes = 4;  // fp32
  out.collective({.op = "loss", .kind = CollectiveKind::all_reduce, .group = GroupKind::tp, .bytes = kStatisticBytes * c.tokens,
                  .forward = 3, .backward = 0});
  if (shape.sequence_parallel) {
    out.collective({.op = "head", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .backward = 0});
    out.collective({.op = "head", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .forward = 0});
    if (!profile.memory.gathered_inputs_kept)
      out.collective({.op = "head", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .forward = 0,
                      .backward = 1, .regather = true});
  } else {
    out.collective({.op = "head", .kind = CollectiveKind::all_reduce, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .forward = 0});
  }
  return std::move(out).take();
}

}  // namespace nd
