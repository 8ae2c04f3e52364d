// SPDX-License-Identifier: Apache-2.0
#include "perf/chunk_time.hpp"

namespace nd::perf {

namespace {

/// `count` passes over a layer of which the shares `full` and `selective` are recomputed.
struct Passes {
  double count = 1, full = 0, selective = 0;
};

void add_layers(const LayerTime& layer, const Passes& passes, const DataParallelPlan& plan, ChunkTime& out) {
  double forward = layer.forward.total();
  const double recompute = passes.full * layer.full_recompute.total() + passes.selective * layer.selective_recompute.total();
  double backward = layer.backward.total() + recompute;
  out.parts.add(layer.forward, passes.count);
  out.parts.add(layer.backward, passes.count);
  if (passes.full > 0) out.parts.add(layer.full_recompute, passes.count * passes.full);
  if (passes.selective > 0) out.parts.add(layer.selective_recompute, passes.count * passes.selective);
  if (plan.zero == ZeroLevel::parameters) {
    const ShardedPasses sharded = sharded_passes(plan, {layer.dense_elements, layer.expert_elements}, forward, backward);
    out.parts.add(sharded.forward, passes.count);
    out.parts.add(sharded.backward, passes.count);
    forward += sharded.forward.total();
    backward += sharded.backward.total();
  }
  out.seconds.forward += passes.count * forward;
  out.seconds.backward += passes.count * backward;
  out.seconds.recompute += passes.count * recompute;
  out.seconds.weight_gradient += passes.count * layer.weight_gradient;
  out.elements.dense += passes.count * layer.dense_elements;
  out.elements.expert += passes.count * layer.expert_elements;
}

/// Layers of one kind, each in one mode.
struct LayersByMode {
  std::int64_t count = 0;
  layout::KindModes modes;
};

void add_planned(const LayerTime& layer, const LayersByMode& layers, const DataParallelPlan& plan, ChunkTime& out) {
  const auto part = [&](std::int64_t count, double full, double selective) {
    if (count > 0) add_layers(layer, {.count = static_cast<double>(count), .full = full, .selective = selective}, plan, out);
  };
  part(layers.count - layers.modes.full - layers.modes.selective, 0, 0);
  part(layers.modes.selective, 0, 1);
  part(layers.modes.full, 1, 0);
}

}  // namespace

double layer_seconds(const LayerTime& layer, Recompute mode, const DataParallelPlan& plan) {
  ChunkTime out;
  add_layers(layer, {.count = 1, .full = mode == Recompute::full ? 1.0 : 0.0, .selective = mode == Recompute::selective ? 1.0 : 0.0}, plan, out);
  return out.seconds.total();
}

void ChunkTime::add(const ChunkTime& other) {
  parts.add(other.parts);
  seconds.forward += other.seconds.forward;
  seconds.backward += other.seconds.backward;
  seconds.recompute += other.seconds.recompute;
  seconds.weight_gradient += other.seconds.weight_gradient;
  elements.dense += other.elements.dense;
  elements.expert += other.elements.expert;
}

ChunkTime chunk_time(const layout::Chunk& chunk, const ShapeTimes& times, const DataParallelPlan& plan, bool tied) {
  ChunkTime out;
  const auto layers = static_cast<double>(chunk.layers());
  Passes passes;
  if (layers > 0) {
    passes.full = static_cast<double>(chunk.full_recompute) / layers;
    passes.selective = static_cast<double>(chunk.selective_recompute) / layers;
  }
  for (std::size_t kind = 0; kind < chunk.layers_by_kind.size(); ++kind) {
    passes.count = static_cast<double>(chunk.layers_by_kind[kind]);
    if (passes.count <= 0) continue;
    if (chunk.modes.empty()) add_layers(times.kinds[kind], passes, plan, out);
    else add_planned(times.kinds[kind], {chunk.layers_by_kind[kind], chunk.modes[kind]}, plan, out);
  }
  if (chunk.embedding) add_layers(times.embedding, {}, plan, out);
  if (chunk.head) {
    add_layers(times.head, {}, plan, out);
    if (tied && chunk.embedding) out.elements.dense += times.tied_head_elements - times.head.dense_elements;
  }
  if (chunk.mtp_blocks > 0) {
    // Each block predicts through the shared head: its work again, but no parameters of its own.
    const auto blocks = static_cast<double>(chunk.mtp_blocks);
    if (chunk.modes.empty()) add_layers(times.mtp, {.count = blocks, .full = passes.full, .selective = passes.selective}, plan, out);
    else add_planned(times.mtp, {chunk.mtp_blocks, chunk.modes.back()}, plan, out);
    const double dense = out.elements.dense;
    add_layers(times.head, {.count = blocks}, plan, out);
    out.elements.dense = dense;
  }
  return out;
}

}  // namespace nd::perf
