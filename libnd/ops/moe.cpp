// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/table.hpp"

namespace nd::ops {
namespace {

/// Tokens times experts per token that one rank computes, h wide: the k copies of the rank's tokens. The tp ranks share
/// the tokens; expert tensor parallelism gathers them again. Buffers padded to a capacity fix the load of every rank, so the
/// imbalance of the busiest one cannot add to the padding; with all experts on the rank nothing is unbalanced.
struct Routed {
  double rows = 0;       ///< computed, padding included
  double sent_rows = 0;  ///< leave the rank: before padding, not gathered over the expert's tensor ranks
  double kept = 1;       ///< share of the computed rows whose activations stay on the device
};

Routed routed(const OpContext& c) {
  const double copies = c.tokens * static_cast<double>(c.ffn().experts_per_token);
  const double load = std::max(c.run.capacity_factor, busiest_rank_load(c.run, c.ffn().experts, c.shape.ep));
  const double shared = c.shape.etp / c.t;
  const double limit = c.run.expert_keep_limit;
  const double kept = limit > 0 ? std::min(1.0, limit / load) : 1.0;
  return {copies * shared * load, c.shape.sequence_parallel ? copies / c.t : copies * shared, kept};
}

/// Writes tensors of the routed rows; recompute of everything but the MoE block keeps them.
class RoutedTensors {
 public:
  RoutedTensors(const OpContext& c, const Routed& rows, LedgerBuilder& out) : c_(c), rows_(rows), out_(out) {}

  /// What experts receive and make goes to the host above the limit and comes back for one layer at a time; their results,
  /// which wait for the weighted sum, stay (published runs: 8712 bytes a row of 768 columns and 2048 hidden: 2h + 6f and 8).
  void save_swappable(std::string_view name, double bytes, Selective selective) const {
    save(name, bytes * rows_.kept, selective);
    out_.working_set(bytes * (1.0 - rows_.kept));
  }
  void save(std::string_view name, double kept, Selective selective) const {
    if (c_.memory().full_keeps_experts) {
      out_.always_saved("experts", name, kept);
    } else {
      out_.saved("experts", name, kept, c_.memory().selective_drops_experts ? Selective::again : selective);
    }
  }

 private:
  const OpContext& c_;
  const Routed& rows_;
  LedgerBuilder& out_;
};

/// Backward working set of `columns` routed columns (times tokens) on this rank. Where experts run in turn only one of them is
/// at work; what the recomputed layer keeps for the others (in the profile's bytes where it covers recompute) is there anyway.
double expert_working_set(const OpContext& c, double columns) {
  const double all = ffn_working_set(c, columns / c.tokens * c.t);
  if (!c.memory().experts_in_turn) return all;
  const ActivationBytes saved = activation_bytes(c);
  const double kept = c.memory().working_set_covers_recompute ? std::min(all, (saved.inputs + saved.outputs) * columns) : 0.0;
  return kept + (all - kept) * c.shape.ep / static_cast<double>(c.ffn().experts);
}

}  // namespace

// h*E weights on every rank, logits and probabilities in fp32: 8 bytes per expert and token.
void add_router(const OpContext& c, LedgerBuilder& out) {
  const double experts = static_cast<double>(c.ffn().experts);
  const double own_tokens = c.tokens / c.sigma;
  out.parameters({.op = "router", .elements = c.hidden * experts});
  if (c.ffn().router_bias) out.parameters({.op = "router bias", .elements = experts, .matrix = false});
  out.gemm({.op = "router", .kind = GemmClass::router, .m = own_tokens, .n = experts, .k = c.hidden});
  constexpr double kRouterBytes = 8;
  out.saved("router", "logits and probabilities", kRouterBytes * experts * own_tokens);
  out.stream("router", kRouterBytes * experts * own_tokens);
}

// E experts of 3*h*f_e (gated) or 2*h*f_e over ep*etp. A local expert multiplies rows / (E/ep) rows.
// Saved: the k dispatched inputs 2hk, the activation's tensors, the k outputs 2hk before they are summed.
void add_experts(const OpContext& c, LedgerBuilder& out) {
  const FfnSpec& f = c.ffn();
  const double experts = static_cast<double>(f.experts), width = static_cast<double>(f.expert_width);
  const double first = f.gated ? 2.0 * width : width;
  const double etp = c.shape.etp, ep = c.shape.ep;
  const double share = static_cast<double>(f.experts_per_token) / experts;
  const auto block = [&](std::string_view op, double elements, double divisor, bool matrix) {
    ParameterBlock out_block;
    out_block.op = op;
    out_block.sharding = ParameterClass::expert;
    out_block.elements = elements / divisor;
    out_block.model_elements = elements;
    out_block.active_elements = elements * share;
    // Grouped: one tensor for all local experts; in turn: one for each.
    out_block.largest_tensor = out_block.elements / (c.memory().experts_in_turn ? std::max(1.0, experts / ep) : 1.0);
    out_block.matrix = matrix;
    out_block.expert_products = matrix;
    out.finished_block(out_block);
  };
  block("experts in", experts * c.hidden * first, ep * etp, true);
  block("experts out", experts * width * c.hidden, ep * etp, true);
  if (f.expert_bias) {
    block("experts in bias", experts * first, ep * etp, false);
    block("experts out bias", experts * c.hidden, ep, false);
  }

  const Routed routed_rows = routed(c);
  const double rows = routed_rows.rows;
  const double local_experts = experts / ep;
  const double rows_per_expert = rows / local_experts;
  const Selective block_again = c.memory().selective_drops_experts ? Selective::again : Selective::keep;
  out.gemm({.op = "experts in", .kind = GemmClass::expert, .count = local_experts, .m = rows_per_expert, .n = first / etp, .k = c.hidden}, block_again);
  out.gemm({.op = "experts out", .kind = GemmClass::expert, .count = local_experts, .m = rows_per_expert, .n = c.hidden, .k = width / etp}, block_again);

  const Selective again = c.memory().selective_drops_activation ? Selective::again : Selective::keep;
  const ActivationBytes saved = activation_bytes(c);
  const double columns = rows * width / etp;
  const RoutedTensors tensors(c, routed_rows, out);
  tensors.save_swappable("dispatched inputs", rows * c.hidden * c.width, Selective::keep);
  tensors.save_swappable("activation inputs", saved.inputs * columns, Selective::keep);
  tensors.save_swappable("activation output", saved.outputs * columns, again);
  tensors.save("expert outputs", rows * c.hidden * c.width, Selective::keep);
  out.stream("expert activation", (f.gated ? 3.0 : 2.0) * c.width * columns, c.memory().selective_drops_experts ? Selective::again : again);
  out.working_set(expert_working_set(c, columns));
}

// Permute, unpermute and weighted sum move 12 bytes per element of a routed row (times what the framework leaves unfused).
// All-to-all dispatchers send k rows per token each way; gathering ones collect the hidden states of the whole expert group
// and scatter sums back, and keep the gathered states. Expert tensor parallelism gathers and scatters over its ranks.
void add_dispatch(const OpContext& c, LedgerBuilder& out) {
  const Routed rows = routed(c);
  const double ep = c.shape.ep, etp = c.shape.etp;
  const bool gathers = c.memory().dispatcher == Dispatcher::all_gather;
  out.stream("permute", 6.0 * rows.rows * c.hidden * c.width, Selective::keep, true);

  const double own_states = c.hidden_bytes() / c.sigma;
  double gathered = rows.sent_rows * c.hidden * c.width;
  if (gathers) {
    gathered = ep * own_states;
    if (c.shape.ep > 1) {
      // The group that gathers is that of ep and expert tensor parallelism together.
      out.saved("dispatch", "gathered hidden states", etp * gathered);
      out.collective({.op = "dispatch", .kind = CollectiveKind::all_gather, .group = GroupKind::ep, .bytes = gathered});
      out.collective({.op = "combine", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::ep, .bytes = gathered});
    }
  } else if (c.shape.ep > 1) {
    out.collective({.op = "dispatch", .kind = CollectiveKind::all_to_all, .group = GroupKind::ep, .bytes = gathered});
    out.collective({.op = "combine", .kind = CollectiveKind::all_to_all, .group = GroupKind::ep, .bytes = gathered});
  }
  if (c.shape.etp == 1) return;
  if (c.shape.sequence_parallel) {
    out.collective({.op = "expert tensor gather", .kind = CollectiveKind::all_gather, .group = GroupKind::etp, .bytes = etp * gathered});
    out.collective({.op = "expert tensor scatter", .kind = CollectiveKind::reduce_scatter, .group = GroupKind::etp, .bytes = etp * gathered});
  } else {
    out.collective({.op = "expert tensor sum", .kind = CollectiveKind::all_reduce, .group = GroupKind::etp, .bytes = c.hidden_bytes()});
  }
}

// Dense feed-forward networks every token passes, split over tp like one; the optional gate is h elements.
void add_shared_experts(const OpContext& c, LedgerBuilder& out) {
  const FfnSpec& f = c.ffn();
  const double count = static_cast<double>(f.shared_experts);
  add_ffn_products(c, out, {.in = "shared in",
                            .out = "shared out",
                            .block = "shared experts",
                            .activation = "shared activation",
                            .width = count * static_cast<double>(f.shared_width),
                            .tensors = count});
  if (!f.shared_gate) return;
  out.parameters({.op = "shared gate", .elements = c.hidden, .matrix = false});
  out.saved("shared experts", "ungated output", c.hidden_bytes() / c.sigma);
  out.stream("shared gate", 2.0 * c.hidden_bytes() / c.sigma);
}

}  // namespace nd::ops
