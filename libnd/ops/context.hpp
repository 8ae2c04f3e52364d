// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "nd/ops.hpp"

namespace nd::ops {

/// What the rows of one layer read: the inputs of layer_ledger() and the factors most rows need.
/// h hidden, t = tp, sigma = tp under sequence parallelism else 1, tokens = s*b/c on one rank. References must outlive it.
struct OpContext {
  OpContext(const ResolvedModel& m, const LayerKind& k, const ResolvedRun& r, const FrameworkProfile& p, const LayerShape& s);

  const ResolvedModel& model;
  const LayerKind& kind;
  const ResolvedRun& run;
  const FrameworkProfile& profile;
  const LayerShape& shape;
  double hidden, tokens;
  double t, sigma;
  double width;        ///< bytes of one activation element: 2, with fp32 training 4
  double width_scale;  ///< width / 2: scales the profile's bytes, which are stated for 16 bits

  [[nodiscard]] const AttentionSpec& attention() const { return kind.attention; }
  [[nodiscard]] const FfnSpec& ffn() const { return kind.ffn; }
  [[nodiscard]] const MemoryProfile& memory() const { return profile.memory; }
  /// Bytes of the layer's input, one full copy: T * h * width.
  [[nodiscard]] double hidden_bytes() const { return tokens * hidden * width; }
  /// Divisor of what both the norm outputs and their users keep: the gathered copy stays whole on some trainers.
  [[nodiscard]] double norm_output_divisor() const { return memory().gathered_inputs_kept ? 1.0 : sigma; }
  /// KV heads on one rank; replicated when there are fewer than ranks.
  [[nodiscard]] double kv_heads_local() const;
  [[nodiscard]] double heads_local() const { return static_cast<double>(attention().heads) / t; }
};

/// Selective recompute runs the op again (and drops what it saved).
enum class Selective : std::uint8_t { keep, again };

/// Writes rows into a ledger; keeps the parallel arrays of the ledger in step.
class LedgerBuilder {
 public:
  /// A parameter block of `elements` of the whole model, of which this rank holds `elements / divisor`.
  struct Block {
    std::string_view op;
    ParameterClass sharding = ParameterClass::replicated;
    double elements = 0;
    double divisor = 1;
    bool matrix = true;
    double active_share = 1;  ///< share of the elements that one token touches
    double tensors = 1;       ///< equal tensors the block consists of
  };
  void parameters(const Block& block);
  void finished_block(const ParameterBlock& block) { ledger_.parameters.push_back(block); }
  void gemm(const Gemm& gemm, Selective selective = Selective::keep);
  void attention(const AttentionWork& work, Selective selective);
  /// Backward bytes are 1.5 times the forward ones: gradients are read and written, saved inputs read
  /// (fitted on fused trainers, docs/cost_model_ops.md#streams).
  void stream(std::string_view op, double bytes_forward, Selective selective = Selective::keep, bool routed = false);
  void finished_stream(const StreamWork& work);
  void collective(const CollectiveWork& work) {
    if (work.bytes > 0) ledger_.collectives.push_back(work);
  }
  /// Dropped by full recompute; by selective recompute when `selective` says so.
  void saved(std::string_view op, std::string_view name, double bytes, Selective selective = Selective::keep);
  /// Kept whatever the recompute mode: tensors outside the layers.
  void always_saved(std::string_view op, std::string_view name, double bytes);
  void working_set(double bytes) { ledger_.working_set_bytes += bytes; }
  void layer_input(double bytes) { ledger_.layer_input_bytes = bytes; }
  [[nodiscard]] LayerLedger take() && { return std::move(ledger_); }

 private:
  LayerLedger ledger_;
};

/// Forward and backward collectives around a tensor-parallel block whose input and output are `bytes` each.
/// With sequence parallelism gather + reduce-scatter, without it one all-reduce per direction.
void add_tensor_parallel_pair(const OpContext& c, LedgerBuilder& out, std::string_view op, double bytes);

/// Context of everything outside the layers (table, head, MTP): the first kind stands in where none is used.
[[nodiscard]] OpContext outer_context(const ResolvedModel& model, const ResolvedRun& run, const FrameworkProfile& profile,
                                      const LayerShape& shape);

}  // namespace nd::ops
