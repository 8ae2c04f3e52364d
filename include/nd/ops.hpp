// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "nd/framework_profile.hpp"
#include "nd/model_spec.hpp"
#include "nd/parallel_config.hpp"
#include "nd/run_spec.hpp"

// The op table is the only description of what a model consists of. Memory, time, verification and the reports read the
// ledgers below; none of them knows a formula of a layer. See docs/cost_model_ops.md#op-table.
namespace nd {

/// Everything the cost of one layer on one rank depends on besides the model. Key of the factor tables.
struct LayerShape {
  std::int64_t seq_length = 1;  ///< s, tokens of a whole sequence
  int micro_batch_size = 1;     ///< b, sequences
  int tp = 1, cp = 1, ep = 1, etp = 1;
  bool sequence_parallel = false;
  CpAlgorithm cp_algorithm = CpAlgorithm::ring;
  friend auto operator<=>(const LayerShape&, const LayerShape&) = default;

  /// T = s * b / cp
  [[nodiscard]] double tokens() const {
    return static_cast<double>(seq_length) * micro_batch_size / cp;
  }
};

/// Over which ranks a parameter is split.
enum class ParameterClass : std::uint8_t { tensor, replicated, expert };

/// A block of parameters of one op on one rank.
struct ParameterBlock {
  std::string_view op;
  ParameterClass sharding = ParameterClass::replicated;
  double elements = 0;   ///< on this rank, before any data-parallel sharding
  double model_elements = 0;  ///< of the whole model (unsharded)
  double active_elements = 0; ///< of the whole model, touched by one token
  double largest_tensor = 0;  ///< elements of the largest single tensor of the block on this rank
  bool matrix = true;         ///< a hidden-layer matrix: Muon keeps one state for it (tables, vectors: false, they stay with AdamW)
  bool expert_products = false;
};

enum class GemmClass : std::uint8_t { dense, expert, head, router };

/// `count` products of (m x k) by (k x n) in the forward pass on one rank. 2*m*n*k FLOPs each.
/// Backward: input gradient and, when `weight`, weight gradient, each of the same FLOPs.
struct Gemm {
  std::string_view op;
  GemmClass kind = GemmClass::dense;
  double count = 1, m = 0, n = 0, k = 0;
  bool weight = true;  ///< k x n is a parameter
  [[nodiscard]] double flops() const { return 2.0 * count * m * n * k; }
};

/// The core of softmax attention on one rank: scores and the weighted sum.
struct AttentionWork {
  std::string_view op;
  double flops_forward = 0;    ///< as an exact causal kernel counts them: half the square, or the window
  double flops_full = 0;       ///< full square (what an unfused kernel does)
  double score_elements = 0;   ///< full square: heads * s * s/cp * b
  double context = 0;          ///< effective tokens one query sees at most (s, or the window)
  double qk_dim = 0, v_dim = 0;
  double backward_ratio = 2.5; ///< backward FLOPs / forward FLOPs
};

/// A memory-bound op: bytes moved when its neighbours are fused as the best frameworks do.
struct StreamWork {
  std::string_view op;
  double bytes_forward = 0, bytes_backward = 0;
  bool routed = false;  ///< permute / unpermute of routed tokens
};

/// Which ranks take part.
enum class GroupKind : std::uint8_t { tp, cp, ep, etp, dp, expert_dp, pp };

/// A collective of one layer and micro-batch.
struct CollectiveWork {
  std::string_view op;
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::tp;
  double bytes = 0;             ///< S: the full (gathered) buffer of one rank; all-to-all: what one rank sends and keeps
  double forward = 1, backward = 1;  ///< how often in the forward / backward pass
  bool regather = false;        ///< gathers a saved shard again for the weight gradient; runs beside the input-gradient product
};

/// A tensor kept from forward to backward, on one rank for one micro-batch.
struct SavedTensor {
  std::string_view op, name;
  double bytes = 0;
  std::array<bool, 3> kept{true, true, false};  ///< by Recompute: off, selective, full
};

/// One layer (or embedding, head, MTP block) of one micro-batch on one rank.
struct LayerLedger {
  std::vector<ParameterBlock> parameters;
  std::vector<Gemm> gemms;
  std::vector<AttentionWork> attention;
  std::vector<StreamWork> streams;
  std::vector<CollectiveWork> collectives;
  std::vector<SavedTensor> saved;
  double working_set_bytes = 0;  ///< transient bytes while its backward runs, on top of what is saved
  /// Which ops selective recompute runs again, by index into gemms / attention / streams.
  std::vector<bool> selective_gemms, selective_attention, selective_streams;
  double layer_input_bytes = 0;  ///< what full recompute keeps instead of `saved`

  [[nodiscard]] double saved_bytes(Recompute mode) const;
  [[nodiscard]] double parameter_elements(ParameterClass sharding) const;
};

/// Ledger of one layer of `kind`. Units as above; never fails on a resolved model with degrees of at least 1.
[[nodiscard]] LayerLedger layer_ledger(const ResolvedModel& model, const LayerKind& kind, const ResolvedRun& run,
                                       const FrameworkProfile& profile, const LayerShape& shape);
/// Token (and position) table: parameters and the lookup.
[[nodiscard]] LayerLedger embedding_ledger(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile,
                                           const LayerShape& shape);
/// Final norm, output projection and loss. `own_table`: false where the tied table already lives on this rank.
/// Saved: the final-norm input and output. Logits are not in `saved`; see logit_elements().
[[nodiscard]] LayerLedger head_ledger(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile,
                                      const LayerShape& shape, bool own_table);
/// One MTP block without its head: projection of 2h to h, norms, one layer.
[[nodiscard]] LayerLedger mtp_ledger(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile,
                                     const LayerShape& shape);
/// Logit elements of one micro-batch on one rank: T * V_padded / tp.
[[nodiscard]] double logit_elements(const ResolvedModel& model, const FrameworkProfile& profile, const LayerShape& shape);
/// Vocabulary padded as the framework does for tp ranks.
[[nodiscard]] std::int64_t padded_vocabulary(const ResolvedModel& model, const FrameworkProfile& profile, int tp);

/// Exact element counts, summed over the op table with all degrees 1.
struct ParameterCount {
  std::int64_t total = 0;    ///< text body without MTP blocks
  std::int64_t active = 0;   ///< elements one token touches (k of E experts; tables count)
  std::int64_t mtp = 0;      ///< of all MTP blocks, without copies of table and head
  std::int64_t embedding = 0, head = 0;  ///< the two tables; a tied head is 0
  std::vector<std::int64_t> per_kind;  ///< of one layer, by kind index
  friend bool operator==(const ParameterCount&, const ParameterCount&) = default;
};
[[nodiscard]] ParameterCount count_parameters(const ResolvedModel& model);

/// Model FLOPs of one token, forward and backward, no recompute: 3 x forward. `causal`: attention counted as half the square.
[[nodiscard]] Flops model_flops_per_token(const ResolvedModel& model, std::int64_t seq_length, bool causal);

}  // namespace nd
