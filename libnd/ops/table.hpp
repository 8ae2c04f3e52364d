// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/context.hpp"

namespace nd::ops {

/// One row of the op table: where it occurs and what it contributes. To add an op: its file and a row in table.cpp.
struct OpRow {
  std::string_view name;
  bool (*applies)(const LayerKind& kind);
  void (*contribute)(const OpContext& context, LedgerBuilder& ledger);
};

// norm.cpp
void add_norms(const OpContext& c, LedgerBuilder& out);
// attention.cpp
void add_attention_projections(const OpContext& c, LedgerBuilder& out);
void add_qk_norm(const OpContext& c, LedgerBuilder& out);
void add_attention_core(const OpContext& c, LedgerBuilder& out);
void add_context_parallel(const OpContext& c, LedgerBuilder& out);
// mla.cpp
void add_mla_projections(const OpContext& c, LedgerBuilder& out);
// linear_attention.cpp
void add_gated_delta(const OpContext& c, LedgerBuilder& out);
// ffn.cpp
void add_dense_ffn(const OpContext& c, LedgerBuilder& out);
// moe.cpp
void add_router(const OpContext& c, LedgerBuilder& out);
void add_experts(const OpContext& c, LedgerBuilder& out);
void add_dispatch(const OpContext& c, LedgerBuilder& out);
void add_shared_experts(const OpContext& c, LedgerBuilder& out);

/// A feed-forward network every token passes, split over tp: two products with the activation between them.
struct FfnProducts {
  std::string_view in, out, block, activation;  ///< names of the op rows
  double width = 0;                             ///< columns of the activation
  double tensors = 1;                           ///< equal networks it consists of
};
void add_ffn_products(const OpContext& c, LedgerBuilder& out, const FfnProducts& products);

/// All rows that apply to the context's kind, and the layer's input.
void add_layer(const OpContext& c, LedgerBuilder& out);

/// Bytes saved per column of a feed-forward network: the inputs of the activation and what it made of them.
struct ActivationBytes {
  double inputs = 0, outputs = 0;
};
[[nodiscard]] ActivationBytes activation_bytes(const OpContext& c);
/// Saves them for `columns` columns (times tokens) on this rank.
void save_activation(const OpContext& c, LedgerBuilder& out, std::string_view op, double columns);
/// Backward working set of `columns` feed-forward columns, bytes per token.
[[nodiscard]] double ffn_working_set(const OpContext& c, double columns);

}  // namespace nd::ops
