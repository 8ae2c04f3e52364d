// SPDX-License-Identifier: Apache-2.0
#include "memory/ledger_summary.hpp"

#include <algorithm>

namespace nd::memory {

namespace {

enum class LedgerRole { layer, table };

constexpr double kComputeBytes = 2;  // bytes per element the op table states the layer input in (16-bit training)

/// Weight shapes with a gradient buffer of their own: every matrix once, of the experts (which share one shape) one.
void collect_shapes(const LayerLedger& ledger, double local_experts, LedgerSummary& out) {
  for (const ParameterBlock& block : ledger.parameters) {
    if (!block.matrix || block.elements <= 0 || out.shape_count == LedgerSummary::kMaxShapes) continue;
    const double share = block.sharding == ParameterClass::expert ? std::max(1.0, local_experts) : 1.0;
    out.shapes[out.shape_count++] = {block.op, block.elements / share};
  }
}

LedgerSummary reduce(const LayerLedger& ledger, const MemoryProfile& memory, LedgerRole role, double local_experts) {
  LedgerSummary out;
  for (const ParameterBlock& block : ledger.parameters) {
    const auto sharding = static_cast<std::size_t>(block.sharding);
    out.elements.all[sharding] += block.elements;
    if (block.matrix && role == LedgerRole::layer) out.elements.matrix[sharding] += block.elements;
    out.largest[sharding] = std::max(out.largest[sharding], block.largest_tensor);
  }
  for (const Recompute mode : {Recompute::off, Recompute::selective, Recompute::full})
    out.saved[static_cast<std::size_t>(mode)] = ledger.saved_bytes(mode);
  out.saved[static_cast<std::size_t>(Recompute::full)] += recompute_input(ledger, memory) - ledger.layer_input_bytes;
  out.input_bytes = ledger.layer_input_bytes;
  out.working_set = ledger.working_set_bytes;
  collect_shapes(ledger, local_experts, out);
  return out;
}

double experts_on_rank(const LayerKind& kind, const LayerShape& shape) {
  return static_cast<double>(kind.ffn.experts) / shape.ep;
}

}  // namespace

void ElementCount::add(const ElementCount& other, double times) {
  for (std::size_t i = 0; i < kParameterClassCount; ++i) {
    all[i] += other.all[i] * times;
    matrix[i] += other.matrix[i] * times;
  }
}

double recompute_input(const LayerLedger& ledger, const MemoryProfile& memory) {
  return ledger.layer_input_bytes * memory.recompute_input_bytes / kComputeBytes;
}

ShapeSummary summarise(const Scenario& scenario, const LayerShape& shape) {
  const auto& [model, run, profile, cluster] = scenario;
  ShapeSummary out;
  const MemoryProfile& memory = profile.memory;
  out.kinds.reserve(model.kinds.size());
  for (const LayerKind& kind : model.kinds)
    out.kinds.push_back(reduce(layer_ledger(model, kind, run, profile, shape), memory, LedgerRole::layer, experts_on_rank(kind, shape)));
  out.embedding = reduce(embedding_ledger(model, run, profile, shape), memory, LedgerRole::table, 1);
  out.head = reduce(head_ledger(model, run, profile, shape, true), memory, LedgerRole::table, 1);
  out.shared_head = reduce(head_ledger(model, run, profile, shape, false), memory, LedgerRole::table, 1);
  if (model.mtp_depth > 0) {
    const LayerKind& kind = model.kinds[static_cast<std::size_t>(model.mtp_kind)];
    out.mtp = reduce(mtp_ledger(model, run, profile, shape), memory, LedgerRole::layer, experts_on_rank(kind, shape));
  }
  out.logit_elements = logit_elements(model, profile, shape);
  const auto s = static_cast<double>(shape.seq_length);
  out.square_bytes = s * s * shape.micro_batch_size;
  return out;
}

}  // namespace nd::memory
