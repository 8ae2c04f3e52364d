// SPDX-License-Identifier: Apache-2.0
#include "ops/table.hpp"

#include <array>

namespace nd {
namespace ops {
namespace {

bool always(const LayerKind&) { return true; }
bool softmax(const LayerKind& kind) { return kind.attention.kind == AttentionKind::softmax; }
bool normed_heads(const LayerKind& kind) { return softmax(kind) && kind.attention.qk_norm; }
bool mla(const LayerKind& kind) { return kind.attention.kind == AttentionKind::mla; }
bool score_attention(const LayerKind& kind) { return softmax(kind) || mla(kind); }
bool gated_delta(const LayerKind& kind) { return kind.attention.kind == AttentionKind::gated_delta; }
bool dense(const LayerKind& kind) { return kind.ffn.kind == FfnKind::dense; }
bool moe(const LayerKind& kind) { return kind.ffn.kind == FfnKind::moe; }
bool shared_experts(const LayerKind& kind) { return moe(kind) && kind.ffn.shared_experts > 0; }

constexpr std::array kRows{
    OpRow{"norms", always, add_norms},
    OpRow{"attention projections", softmax, add_attention_projections},
    OpRow{"qk norm", normed_heads, add_qk_norm},
    OpRow{"mla projections", mla, add_mla_projections},
    OpRow{"attention core", score_attention, add_attention_core},
    OpRow{"context parallel", score_attention, add_context_parallel},
    OpRow{"gated delta", gated_delta, add_gated_delta},
    OpRow{"dense ffn", dense, add_dense_ffn},
    OpRow{"router", moe, add_router},
    OpRow{"experts", moe, add_experts},
    OpRow{"dispatch", moe, add_dispatch},
    OpRow{"shared experts", shared_experts, add_shared_experts},
};

}  // namespace

void add_layer(const OpContext& c, LedgerBuilder& out) {
  for (const OpRow& row : kRows)
    if (row.applies(c.kind)) row.contribute(c, out);
  out.layer_input(c.hidden_bytes() / (c.memory().recompute_keeps_layer_input_sharded ? c.sigma : 1.0));
}

}  // namespace ops

LayerLedger layer_ledger(const ResolvedModel& model, const LayerKind& kind, const ResolvedRun& run, const FrameworkProfile& profile,
                         const LayerShape& shape) {
  ops::LedgerBuilder out;
  ops::add_layer(ops::OpContext(model, kind, run, profile, shape), out);
  return std::move(out).take();
}

}  // namespace nd
