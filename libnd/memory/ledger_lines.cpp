// SPDX-License-Identifier: Apache-2.0
#include "memory/ledger_lines.hpp"

#include <algorithm>
#include <array>

namespace nd::memory {

namespace {

constexpr std::string_view kParameters = "parameters", kGradients = "gradients", kStates = "optimizer_states", kActivations = "activations";

/// Adds bytes up by (part, op, tensor), in the order in which lines first appear.
class LineSet {
 public:
  void add(std::string_view part, std::string_view op, std::string_view tensor, double bytes) {
    if (!(bytes > 0)) return;
    for (MemoryLine& line : lines_) {
      if (line.part == part && line.op == op && line.tensor == tensor) {
        line.bytes += Bytes{bytes};
        return;
      }
    }
    lines_.push_back({.part = part, .op = op, .tensor = tensor, .bytes = {bytes}});
  }
  [[nodiscard]] std::vector<MemoryLine> take() { return std::move(lines_); }

 private:
  std::vector<MemoryLine> lines_;
};

enum class LedgerRole { layer, table };

class LineWriter {
 public:
  LineWriter(const StageInput& input, const StagePrice& price)
      : in_(input), price_(price), shape_(layout::layer_shape(input.scenario.run, input.config)) {}

  std::vector<MemoryLine> write() {
    for (std::size_t k = 0; k < in_.scenario.model.kinds.size(); ++k) layers(k);
    mtp();
    tables();
    adapters();
    for (const ItemInfo& info : kItems) lines_.add(to_text(info.part), info.op, info.tensor, price_.items[info.item]);
    std::vector<MemoryLine> lines = lines_.take();
    sort_inside_parts(lines);
    return lines;
  }

 private:
  void layers(std::size_t kind) {
    double count = 0;
    Kept kept{};
    for (std::size_t c = 0; c < in_.chunks.size(); ++c) {
      const auto layers = static_cast<double>(in_.chunks[c].layers_by_kind[kind]);
      const RecomputeShares shares = recompute_shares(in_.chunks[c], kind);
      count += layers;
      const double times = layers * price_.counts[c];
      kept[0] += times * shares.off;
      kept[1] += times * shares.selective;
      kept[2] += times * shares.full;
    }
    if (count <= 0) return;
    const auto& [model, run, profile, cluster] = in_.scenario;
    const LayerLedger ledger = layer_ledger(model, model.kinds[kind], run, profile, shape_);
    states(ledger, count, LedgerRole::layer);
    activations(ledger, kept);
  }

  void mtp() {
    const std::int64_t blocks = price_.content.mtp_blocks;
    if (blocks == 0) return;
    const auto& [model, run, profile, cluster] = in_.scenario;
    const LayerLedger ledger = mtp_ledger(model, run, profile, shape_);
    states(ledger, static_cast<double>(blocks), LedgerRole::layer);
    Kept kept{};
    for (std::size_t c = 0; c < in_.chunks.size(); ++c) {
      const RecomputeShares shares = mtp_shares(in_.chunks[c], in_.config.recompute);
      const double times = static_cast<double>(in_.chunks[c].mtp_blocks) * price_.counts[c];
      kept[0] += times * shares.off;
      kept[1] += times * shares.selective;
      kept[2] += times * shares.full;
    }
    activations(ledger, kept);
  }

  void tables() {
    const auto& [model, run, profile, cluster] = in_.scenario;
    const StageContent& content = price_.content;
    const LayerLedger embedding = embedding_ledger(model, run, profile, shape_);
    if (content.has_embedding) {
      states(embedding, 1, LedgerRole::table);
      elements("vision tower", ParameterClass::replicated, static_cast<double>(model.vision_parameters), LedgerRole::table);
    }
    if (content.has_head) {
      const bool own_table = !(model.tied_embeddings && content.has_embedding);
      states(head_ledger(model, run, profile, shape_, own_table), 1, LedgerRole::table);
    }
    if (copies_table(model, content))
      elements("mtp table copy", ParameterClass::tensor, embedding.parameter_elements(ParameterClass::tensor), LedgerRole::table);
    for (std::size_t c = 0; c < in_.chunks.size(); ++c) {
      const layout::Chunk& chunk = in_.chunks[c];
      if (chunk.embedding) activations(embedding, {price_.counts[c], 0, 0});
      if (chunk.head) {
        const double heads = 1.0 + static_cast<double>(chunk.mtp_blocks);
        const bool own_table = !(model.tied_embeddings && content.has_embedding);
        activations(head_ledger(model, run, profile, shape_, own_table), {heads * price_.counts[c], 0, 0});
      }
    }
  }

  void adapters() {
    const double trained = price_.trained_elements;
    lines_.add(kParameters, "adapters", "weight", trained * in_.rates.adapter_weight);
    if (price_.has_gradients) lines_.add(kGradients, "adapters", "gradient", trained * in_.rates.adapter_gradient);
    if (price_.has_moments) lines_.add(kStates, "adapters", "moments", trained * in_.rates.adapter_moments);
  }

  void states(const LayerLedger& ledger, double count, LedgerRole role) {
    for (const ParameterBlock& block : ledger.parameters)
      elements(block.op, block.sharding, block.elements * count, block.matrix ? role : LedgerRole::table);
  }
  /// `role` layer: a layer's matrix (Muon, quantised base); table: anything else.
  void elements(std::string_view op, ParameterClass sharding, double count, LedgerRole role) {
    const auto c = static_cast<std::size_t>(sharding);
    const StateRates& rates = in_.rates;
    lines_.add(kParameters, op, "weight", count * (role == LedgerRole::layer ? rates.weight_matrix[c] : rates.weight[c]));
    if (price_.has_gradients) lines_.add(kGradients, op, "gradient", count * rates.gradient[c]);
    lines_.add(kStates, op, "main copy", count * rates.main[c]);
    if (price_.has_moments)
      lines_.add(kStates, op, "moments", count * (role == LedgerRole::layer ? rates.moments_matrix[c] : rates.moments[c]));
  }

  using Kept = std::array<double, 3>;  ///< how often a ledger is kept, by Recompute
  void activations(const LayerLedger& ledger, const Kept& kept) {
    if (!price_.keeps_activations) return;
    for (const SavedTensor& tensor : ledger.saved) {
      double times = 0;
      for (std::size_t mode = 0; mode < kept.size(); ++mode)
        if (tensor.kept[mode]) times += kept[mode];
      lines_.add(kActivations, tensor.op, tensor.name, tensor.bytes * times);
    }
    lines_.add(kActivations, "layers", "recompute input", recompute_input(ledger, in_.scenario.profile.memory) * kept[2]);
  }

  static void sort_inside_parts(std::vector<MemoryLine>& lines) {
    constexpr std::array<std::string_view, 9> kOrder{kParameters,   kGradients, kStates,       "workspace", "buffers",
                                                     kActivations, "logits",   "working_set", "temporary"};
    const auto place = [&kOrder](std::string_view part) { return std::ranges::find(kOrder, part) - kOrder.begin(); };
    std::ranges::stable_sort(lines, [&place](const MemoryLine& a, const MemoryLine& b) {
      if (a.part != b.part) return place(a.part) < place(b.part);
      return a.bytes > b.bytes;
    });
  }

  const StageInput& in_;
  const StagePrice& price_;
  LayerShape shape_;
  LineSet lines_;
};

}  // namespace

std::vector<MemoryLine> ledger_lines(const StageInput& input, const StagePrice& price) { return LineWriter(input, price).write(); }

}  // namespace nd::memory
