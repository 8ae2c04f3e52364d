// SPDX-License-Identifier: Apache-2.0
#include "core/integer.hpp"
#include "ops/table.hpp"

namespace nd {

std::int64_t padded_vocabulary(const ResolvedModel& model, const FrameworkProfile& profile, int tp) {
  const std::int64_t step = profile.can.vocab_padding > 0 ? profile.can.vocab_padding * tp : tp;
  return core::round_up(model.vocab_size, step);
}

// The table is split over tp by rows; positions are on every rank. Ids of 8 bytes are kept; a dropout mask of 1 byte per element
// follows (Korthikanti et al. 2022, section 4.3). Moved: 10 bytes per element in all (lookup 4, gradient scatter 6,
// docs/cost_model_ops.md#streams). Ranks hold different rows, so their results are summed.
LayerLedger embedding_ledger(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile,
                             const LayerShape& shape) {
  const ops::OpContext c = ops::outer_context(model, run, profile, shape);
  ops::LedgerBuilder out;
  ParameterBlock table;
  table.op = "embedding";
  table.sharding = ParameterClass::tensor;
  table.elements = static_cast<double>(padded_vocabulary(model, profile, shape.tp)) / c.t * c.hidden;
  table.model_elements = table.active_elements = static_cast<double>(model.vocab_size) * c.hidden;
  table.largest_tensor = table.elements;
  table.matrix = false;
  out.finished_block(table);
  if (model.learned_positions)
    out.parameters({.op = "positions", .elements = static_cast<double>(model.max_positions) * c.hidden, .matrix = false});

  constexpr double kIdBytes = 8;
  out.always_saved("embedding", "token ids", kIdBytes * c.tokens);
  if (model.embedding_norm) {
    out.parameters({.op = "embedding norm", .elements = c.hidden * (model.norm_bias ? 2.0 : 1.0), .matrix = false,
                    .tensors = model.norm_bias ? 2.0 : 1.0});
    out.always_saved("embedding", "norm input", c.hidden_bytes() / c.sigma);
    out.stream("embedding norm", 2.0 * c.hidden_bytes() / c.sigma);
  }
  if (run.hidden_dropout > 0) out.always_saved("embedding", "dropout mask", c.tokens * c.hidden / c.sigma);
  StreamWork lookup;
  lookup.op = "embedding";
  lookup.bytes_forward = 2.0 * c.hidden_bytes();
  lookup.bytes_backward = 3.0 * c.hidden_bytes();
  out.finished_stream(lookup);

  if (shape.tp > 1) {
    if (shape.sequence_parallel) {
      out.collective({.op = "embedding", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .backward = 0});
      out.collective({.op = "embedding", .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .forward = 0});
    } else {
      out.collective({.op = "embedding", .kind = CollectiveKind::all_reduce, .group = GroupKind::tp, .bytes = c.hidden_bytes(), .backward = 0});
    }
  }
  return std::move(out).take();
}

}  // namespace nd
