// SPDX-License-Identifier: Apache-2.0
#include "memory/stage_content.hpp"

#include <algorithm>

namespace nd::memory {

namespace {

constexpr std::size_t kTensor = static_cast<std::size_t>(ParameterClass::tensor);
constexpr std::size_t kReplicated = static_cast<std::size_t>(ParameterClass::replicated);

/// Adds `count` units of one ledger to the content.
class ContentBuilder {
 public:
  explicit ContentBuilder(StageContent& content) : content_(content) {}

  void layers(const LedgerSummary& ledger, double count) {
    if (count <= 0) return;
    content_.body.add(ledger.elements, count);
    if (ledger.elements.total() > content_.largest_layer.total()) content_.largest_layer = ledger.elements;
    unit(ledger, count);
  }
  void table(const LedgerSummary& ledger, ElementCount& where) {
    where.add(ledger.elements, 1);
    unit(ledger, 1);
  }

 private:
  void unit(const LedgerSummary& ledger, double count) {
    content_.elements.add(ledger.elements, count);
    for (std::size_t i = 0; i < kParameterClassCount; ++i)
      content_.largest_tensor[i] = std::max(content_.largest_tensor[i], ledger.largest[i]);
  }
  StageContent& content_;
};

RecomputeShares shares(const layout::KindModes& modes, std::int64_t count) {
  if (count <= 0) return {};
  const auto all = static_cast<double>(count);
  const double full = static_cast<double>(modes.full) / all;
  const double selective = static_cast<double>(modes.selective) / all;
  return {.off = 1 - full - selective, .selective = selective, .full = full};
}

}  // namespace

const LedgerSummary& head_summary(const ResolvedModel& model, const ShapeSummary& shape, bool has_embedding) {
  return model.tied_embeddings && has_embedding ? shape.shared_head : shape.head;
}

bool copies_table(const ResolvedModel& model, const StageContent& content) {
  return content.mtp_blocks > 0 && !content.has_embedding && !(model.tied_embeddings && content.has_head);
}

StageContent stage_content(const ResolvedModel& model, const ShapeSummary& shape, std::span<const layout::Chunk> chunks) {
  StageContent content;
  ContentBuilder builder(content);
  for (const layout::Chunk& chunk : chunks) {
    content.has_embedding = content.has_embedding || chunk.embedding;
    content.has_head = content.has_head || chunk.head;
    content.mtp_blocks += chunk.mtp_blocks;
    for (std::size_t kind = 0; kind < chunk.layers_by_kind.size(); ++kind) {
      const auto count = static_cast<double>(chunk.layers_by_kind[kind]);
      content.layers += count;
      builder.layers(shape.kinds[kind], count);
    }
  }
  builder.layers(shape.mtp, static_cast<double>(content.mtp_blocks));
  if (content.has_embedding) builder.table(shape.embedding, content.embedding);
  if (content.has_head) builder.table(head_summary(model, shape, content.has_embedding), content.head);
  if (copies_table(model, content)) {
    ElementCount copy;
    copy.all[kTensor] = shape.embedding.elements.all[kTensor];
    content.elements.add(copy, 1);
    content.embedding.add(copy, 1);
    content.largest_tensor[kTensor] = std::max(content.largest_tensor[kTensor], shape.embedding.largest[kTensor]);
  }
  if (content.has_embedding) {
    // A vision tower is not priced op by op: its weights count whole on the first stage, its activations do not.
    ElementCount tower;
    tower.all[kReplicated] = static_cast<double>(model.vision_parameters);
    content.elements.add(tower, 1);
  }
  return content;
}

RecomputeShares recompute_shares(const layout::Chunk& chunk, std::size_t kind) {
  const bool planned = !chunk.modes.empty();
  const std::int64_t layers = planned ? chunk.layers_by_kind[kind] : chunk.layers();
  return shares(planned ? chunk.modes[kind] : layout::KindModes{chunk.selective_recompute, chunk.full_recompute}, layers);
}

RecomputeShares mtp_shares(const layout::Chunk& chunk, Recompute otherwise) {
  if (!chunk.modes.empty()) return shares(chunk.modes.back(), chunk.mtp_blocks);
  const std::int64_t layers = chunk.layers();
  const Recompute mode = layers == 0                          ? otherwise
                         : chunk.full_recompute == layers      ? Recompute::full
                         : chunk.selective_recompute == layers ? Recompute::selective
                                                               : Recompute::off;
  return shares({mode == Recompute::selective ? 1 : 0, mode == Recompute::full ? 1 : 0}, 1);
}

}  // namespace nd::memory
