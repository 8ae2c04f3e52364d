// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "nd/ops.hpp"
#include "nd/scenario.hpp"

namespace nd::memory {

inline constexpr std::size_t kParameterClassCount = 3;  ///< as ParameterClass

/// Parameter elements on one rank, by ParameterClass. Plain sums, so stages can add layers up.
struct ElementCount {
  std::array<double, kParameterClassCount> all{};
  std::array<double, kParameterClassCount> matrix{};  ///< of `all`, two-dimensional weights of layers (never tables)

  void add(const ElementCount& other, double times);
  [[nodiscard]] double total() const { return all[0] + all[1] + all[2]; }
};

/// One distinct weight shape for which a framework may cache a gradient buffer.
struct WeightShape {
  std::string_view op;
  double elements = 0;
};

/// What memory needs to know of one ledger; no heap, so that a candidate is priced without touching the ledger again.
struct LedgerSummary {
  static constexpr std::size_t kMaxShapes = 16;

  ElementCount elements;
  std::array<double, kParameterClassCount> largest{};  ///< largest single tensor by class, elements on this rank
  std::array<double, 3> saved{};     ///< bytes kept for the backward of one micro-batch, by Recompute
  double input_bytes = 0;            ///< the layer's input
  double working_set = 0;            ///< transient bytes of its backward
  std::array<WeightShape, kMaxShapes> shapes{};
  std::size_t shape_count = 0;

  [[nodiscard]] std::span<const WeightShape> weight_shapes() const { return {shapes.data(), shape_count}; }
};

/// Bytes of the layer input that full recompute keeps; some trainers keep it wider than the activations.
[[nodiscard]] double recompute_input(const LayerLedger& ledger, const MemoryProfile& memory);

/// Every ledger of one LayerShape, reduced.
struct ShapeSummary {
  std::vector<LedgerSummary> kinds;  ///< by kind index of the model
  LedgerSummary embedding, head, shared_head, mtp;  ///< shared_head: the tied table lives on the same rank
  double logit_elements = 0;
  double square_bytes = 0;           ///< b * s * s: one byte per element of a full attention mask
};

[[nodiscard]] ShapeSummary summarise(const Scenario& scenario, const LayerShape& shape);

}  // namespace nd::memory
