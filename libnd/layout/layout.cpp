// SPDX-License-Identifier: Apache-2.0
#include "layout/layout.hpp"

#include <algorithm>
#include <numeric>

#include "core/integer.hpp"
#include "layout/schedules/table.hpp"

namespace nd::layout {

namespace {

/// Layers per chunk and stage when nobody states them: the even split; of a remainder, the middle stages of the first
/// chunks get one more each, because the ends carry table and head (docs/cost_model.md#stages).
std::vector<std::vector<std::int64_t>> even_split(std::int64_t layers, int pp, int vpp) {
  const std::int64_t parts = std::int64_t{pp} * vpp;
  std::vector<std::vector<std::int64_t>> chunks(static_cast<std::size_t>(vpp),
                                                std::vector<std::int64_t>(static_cast<std::size_t>(pp), layers / parts));
  std::int64_t rest = layers % parts;
  // From the second stage on, the last stage, then the first: the last stage's head usually weighs more than the table,
  // but the first keeps more micro-batches alive.
  for (auto& chunk : chunks) {
    for (int i = 1; i < pp - 1 && rest > 0; ++i, --rest) ++chunk[static_cast<std::size_t>(i)];
  }
  for (auto& chunk : chunks) {
    if (rest > 0) ++chunk.front(), --rest;
  }
  for (auto& chunk : chunks) {
    if (rest > 0) ++chunk.back(), --rest;
  }
  return chunks;
}

/// Stages filled in order until each has its share of the whole cost; the head is the last block. nanotron cuts its pipelines so,
/// with these costs of its blocks (models/llama.py, get_block_compute_costs): 4 h^2 + 3 h f of a layer, h V of the head, nothing for
/// the table. A MoE layer counts what a token passes through.
std::vector<std::vector<std::int64_t>> cost_split(const ResolvedModel& model, int pp) {
  const auto h = static_cast<double>(model.hidden_size);
  const auto layer_cost = [&](int kind) {
    const FfnSpec& ffn = model.kinds[static_cast<std::size_t>(kind)].ffn;
    const bool experts = ffn.kind == FfnKind::moe;
    const std::int64_t width = experts ? ffn.experts_per_token * ffn.expert_width + ffn.shared_experts * ffn.shared_width : ffn.width;
    return 4 * h * h + 3 * h * static_cast<double>(width);
  };
  double whole = h * static_cast<double>(model.vocab_size);
  for (const int kind : model.layer_kind) whole += layer_cost(kind);
  const double share = whole / pp;
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pp), 0);
  std::size_t stage = 0;
  double placed = 0;
  for (const int kind : model.layer_kind) {
    ++stages[stage];
    placed += layer_cost(kind);
    if (placed >= share * static_cast<double>(stage + 1) && stage + 1 < stages.size()) ++stage;
  }
  return {stages};
}

}  // namespace

std::int64_t Chunk::layers() const { return std::accumulate(layers_by_kind.begin(), layers_by_kind.end(), std::int64_t{0}); }

StageLayout make_layout(const ResolvedModel& model, const ResolvedRun& run, const ParallelConfig& config) {
  const auto stated = run.layers_per_chunk.size() == static_cast<std::size_t>(config.vpp) &&
                      run.layers_per_chunk.front().size() == static_cast<std::size_t>(config.pp);
  const bool by_cost = !stated && run.layer_split == LayerSplit::block_cost && config.vpp == 1;
  const auto even = even_split(model.layers(), config.pp, config.vpp);
  const auto counts = stated ? run.layers_per_chunk : by_cost ? cost_split(model, config.pp) : even;

  StageLayout layout;
  // Stated or not: one split has one price, so that a strategy that is written out keeps its own.
  layout.balanced = !by_cost && counts == even && model.layers() % (std::int64_t{config.pp} * config.vpp) != 0;
  layout.stages.assign(static_cast<std::size_t>(config.pp), std::vector<Chunk>(static_cast<std::size_t>(config.vpp)));
  std::size_t next = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    for (std::size_t s = 0; s < counts[c].size(); ++s) {
      Chunk& chunk = layout.stages[s][c];
      chunk.layers_by_kind.assign(model.kinds.size(), 0);
      for (std::int64_t i = 0; i < counts[c][s]; ++i, ++next) ++chunk.layers_by_kind[static_cast<std::size_t>(model.layer_kind[next])];
    }
  }
  layout.stages.front().front().embedding = true;
  layout.stages.back().back().head = true;
  layout.stages.back().back().mtp_blocks = model.mtp_depth;

  // Recompute: per-stage lists are spread over the chunks in order; else the mode of the candidate holds for all layers.
  const auto listed = [](const std::vector<std::int64_t>& list, std::size_t stage) { return stage < list.size() ? list[stage] : 0; };
  const bool lists = (!run.full_recompute_layers.empty() && run.full_recompute_layers.size() == layout.stages.size()) ||
                     (!run.selective_recompute_layers.empty() && run.selective_recompute_layers.size() == layout.stages.size());
  const bool use_lists = lists && config.recompute == run.strategy.recompute;
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    std::int64_t full = use_lists ? listed(run.full_recompute_layers, s) : 0;
    std::int64_t selective = use_lists ? listed(run.selective_recompute_layers, s) : 0;
    for (auto& chunk : layout.stages[s]) {
      const std::int64_t layers = chunk.layers();
      if (use_lists) {
        chunk.full_recompute = std::min(layers, full);
        chunk.selective_recompute = std::min(layers - chunk.full_recompute, selective);
        full -= chunk.full_recompute;
        selective -= chunk.selective_recompute;
      } else {
        chunk.full_recompute = config.recompute == Recompute::full ? layers : 0;
        chunk.selective_recompute = config.recompute == Recompute::selective ? layers : 0;
      }
    }
  }
  return layout;
}

StageLayout scheduled_layout(const ResolvedModel& model, const ResolvedRun& run, const ParallelConfig& config) {
  StageLayout looped = make_layout(model, run, config);
  const ScheduleRow& row = schedule_row(config.schedule);
  const ScheduleShape shape = schedule_shape(config);
  if (why_invalid(row, shape)) return looped;
  StageLayout out;
  out.balanced = looped.balanced;
  out.stages.resize(looped.stages.size());
  for (int stage = 0; stage < config.pp; ++stage) {
    for (int chunk = 0; chunk < row.local_chunks(shape); ++chunk) {
      const int place = row.position(shape, stage, chunk);
      out.stages[static_cast<std::size_t>(stage)].push_back(
          looped.stages[static_cast<std::size_t>(place % config.pp)][static_cast<std::size_t>(place / config.pp)]);
    }
  }
  return out;
}

LayerShape layer_shape(const ResolvedRun& run, const ParallelConfig& config) {
  return {.seq_length = run.seq_length,
          .micro_batch_size = config.micro_batch_size,
          .tp = config.tp,
          .cp = config.cp,
          .ep = config.ep,
          .etp = config.etp,
          .sequence_parallel = config.sequence_parallel,
          .cp_algorithm = config.cp_algorithm};
}

double chunks_in_flight(const ParallelConfig& config, int stage) {
  const ScheduleRow& row = schedule_row(config.schedule);
  const ScheduleShape shape = schedule_shape(config);
  // What the schedule cannot run keeps everything: the safe side.
  if (why_invalid(row, shape)) return static_cast<double>(config.micro_batch_num) * config.vpp;
  return row.held(shape, stage).together;
}

}  // namespace nd::layout
