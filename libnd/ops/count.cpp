// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>

#include "nd/ops.hpp"

namespace nd {
namespace {

struct Sum {
  std::int64_t all = 0, active = 0;
  Sum& operator+=(const Sum& other) {
    all += other.all;
    active += other.active;
    return *this;
  }
};

// Every block is far below 2^53, where doubles hold integers exactly; the sums are made in integers.
Sum sum_of(const LayerLedger& ledger) {
  Sum out;
  for (const ParameterBlock& block : ledger.parameters) {
    out.all += std::llround(block.model_elements);
    out.active += std::llround(block.active_elements);
  }
  return out;
}

std::int64_t elements_of(const LayerLedger& ledger, std::string_view op) {
  std::int64_t out = 0;
  for (const ParameterBlock& block : ledger.parameters)
    if (block.op == op) out += std::llround(block.model_elements);
  return out;
}

/// Forward FLOPs of one micro-batch; the attention core counted as the caller wants it.
double forward_flops(const LayerLedger& ledger, bool causal) {
  double sum = 0;
  for (const Gemm& gemm : ledger.gemms) sum += gemm.flops();
  for (const AttentionWork& work : ledger.attention) sum += causal ? work.flops_forward : work.flops_full;
  return sum;
}

}  // namespace

ParameterCount count_parameters(const ResolvedModel& model) {
  const ResolvedRun run;
  const FrameworkProfile profile;
  const LayerShape shape;
  ParameterCount out;
  std::vector<Sum> kinds;
  for (const LayerKind& kind : model.kinds) {
    kinds.push_back(sum_of(layer_ledger(model, kind, run, profile, shape)));
    out.per_kind.push_back(kinds.back().all);
  }
  Sum body;
  for (const int kind : model.layer_kind) body += kinds[static_cast<std::size_t>(kind)];
  const LayerLedger embedding = embedding_ledger(model, run, profile, shape);
  const LayerLedger head = head_ledger(model, run, profile, shape, !model.tied_embeddings);
  body += sum_of(embedding);
  body += sum_of(head);
  out.total = body.all;
  out.active = body.active;
  out.embedding = elements_of(embedding, "embedding");
  out.head = elements_of(head, "head");
  if (model.mtp_depth > 0) out.mtp = model.mtp_depth * sum_of(mtp_ledger(model, run, profile, shape)).all;
  return out;
}

// 3 x forward: the backward does every product twice, and the core is counted so too (PaLM, arXiv 2204.02311, appendix B).
Flops model_flops_per_token(const ResolvedModel& model, std::int64_t seq_length, bool causal) {
  constexpr double kForwardAndBackward = 3.0;
  const ResolvedRun run;
  FrameworkProfile profile;
  profile.can.vocab_padding = 1;
  LayerShape shape;
  shape.seq_length = seq_length;
  double sum = 0;
  std::vector<double> kinds;
  for (const LayerKind& kind : model.kinds) kinds.push_back(forward_flops(layer_ledger(model, kind, run, profile, shape), causal));
  for (const int kind : model.layer_kind) sum += kinds[static_cast<std::size_t>(kind)];
  const double head = forward_flops(head_ledger(model, run, profile, shape, true), causal);
  sum += head;
  if (model.mtp_depth > 0)
    sum += static_cast<double>(model.mtp_depth) * (head + forward_flops(mtp_ledger(model, run, profile, shape), causal));
  return {kForwardAndBackward * sum / static_cast<double>(seq_length)};
}

}  // namespace nd
