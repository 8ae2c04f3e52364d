// SPDX-License-Identifier: Apache-2.0
#include "ops/context.hpp"

#include <algorithm>

namespace nd::ops {

OpContext::OpContext(const ResolvedModel& m, const LayerKind& k, const ResolvedRun& r, const FrameworkProfile& p, const LayerShape& s)
    : model(m),
      kind(k),
      run(r),
      profile(p),
      shape(s),
      hidden(static_cast<double>(m.hidden_size)),
      tokens(s.tokens()),
      t(s.tp),
      sigma(s.sequence_parallel ? s.tp : 1),
      width(r.compute_dtype == Dtype::fp32 || r.compute_dtype == Dtype::tf32 ? 4.0 : 2.0),
      width_scale(width / 2.0) {}

double OpContext::kv_heads_local() const { return std::max(1.0, static_cast<double>(attention().kv_heads) / t); }

OpContext outer_context(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile,
                        const LayerShape& shape) {
  return OpContext(model, model.kinds.front(), run, profile, shape);
}

void LedgerBuilder::parameters(const Block& block) {
  ParameterBlock out;
  out.op = block.op;
  out.sharding = block.sharding;
  out.elements = block.elements / block.divisor;
  out.model_elements = block.elements;
  out.active_elements = block.elements * block.active_share;
  out.largest_tensor = out.elements / block.tensors;
  out.matrix = block.matrix;
  if (out.model_elements > 0) ledger_.parameters.push_back(out);
}

void LedgerBuilder::gemm(const Gemm& gemm, Selective selective) {
  ledger_.gemms.push_back(gemm);
  ledger_.selective_gemms.push_back(selective == Selective::again);
}

void LedgerBuilder::attention(const AttentionWork& work, Selective selective) {
  ledger_.attention.push_back(work);
  ledger_.selective_attention.push_back(selective == Selective::again);
}

void LedgerBuilder::stream(std::string_view op, double bytes_forward, Selective selective, bool routed) {
  constexpr double kBackwardRatio = 1.5;
  if (bytes_forward <= 0) return;
  StreamWork work;
  work.op = op;
  work.bytes_forward = bytes_forward;
  work.bytes_backward = kBackwardRatio * bytes_forward;
  work.routed = routed;
  ledger_.streams.push_back(work);
  ledger_.selective_streams.push_back(selective == Selective::again);
}

void LedgerBuilder::finished_stream(const StreamWork& work) {
  ledger_.streams.push_back(work);
  ledger_.selective_streams.push_back(false);
}

void LedgerBuilder::saved(std::string_view op, std::string_view name, double bytes, Selective selective) {
  if (bytes <= 0) return;
  SavedTensor tensor;
  tensor.op = op;
  tensor.name = name;
  tensor.bytes = bytes;
  tensor.kept = {true, selective == Selective::keep, false};
  ledger_.saved.push_back(tensor);
}

void LedgerBuilder::always_saved(std::string_view op, std::string_view name, double bytes) {
  if (bytes <= 0) return;
  SavedTensor tensor;
  tensor.op = op;
  tensor.name = name;
  tensor.bytes = bytes;
  tensor.kept = {true, true, true};
  ledger_.saved.push_back(tensor);
}

void add_tensor_parallel_pair(const OpContext& c, LedgerBuilder& out, std::string_view op, double bytes) {
  if (c.shape.tp == 1) return;
  if (!c.shape.sequence_parallel) {
    out.collective({.op = op, .kind = CollectiveKind::all_reduce, .group = GroupKind::tp, .bytes = bytes});
    return;
  }
  out.collective({.op = op, .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = bytes});
  out.collective({.op = op, .kind = CollectiveKind::reduce_scatter, .group = GroupKind::tp, .bytes = bytes});
  // Only the shard of the input is kept, so the weight gradient needs it gathered once more.
  if (!c.memory().gathered_inputs_kept)
    out.collective({.op = op, .kind = CollectiveKind::all_gather, .group = GroupKind::tp, .bytes = bytes, .forward = 0, .backward = 1,
                    .regather = true});
}

}  // namespace nd::ops
