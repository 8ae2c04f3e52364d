// SPDX-License-Identifier: Apache-2.0
#include "unit/memory/scenarios.hpp"

namespace nd::test {

namespace {

LayerKind dense_kind(const Decoder& d) {
  LayerKind kind;
  kind.attention.heads = d.heads;
  kind.attention.kv_heads = d.kv_heads;
  kind.attention.qk_dim = kind.attention.v_dim = d.head_dim > 0 ? d.head_dim : d.hidden / d.heads;
  kind.ffn.gated = d.gated;
  kind.ffn.width = d.ffn;
  kind.norm_bias = d.norm_bias;
  return kind;
}

}  // namespace

ResolvedModel decoder(const Decoder& d) {
  ResolvedModel model;
  model.name = "decoder";
  model.hidden_size = d.hidden;
  model.vocab_size = d.vocab;
  model.kinds = {dense_kind(d)};
  model.layer_kind.assign(static_cast<std::size_t>(d.layers), 0);
  model.tied_embeddings = d.tied;
  model.norm_bias = d.norm_bias;
  return model;
}

ResolvedModel mixture(const Decoder& d, const Experts& e) {
  ResolvedModel model = decoder(d);
  LayerKind kind = model.kinds.front();
  kind.ffn.kind = FfnKind::moe;
  kind.ffn.experts = e.count;
  kind.ffn.experts_per_token = e.per_token;
  kind.ffn.expert_width = e.width;
  kind.ffn.shared_experts = e.shared;
  kind.ffn.shared_width = e.shared_width;
  if (e.dense_layers == 0) {
    model.kinds = {kind};
    return model;
  }
  model.kinds.push_back(kind);
  for (std::size_t i = static_cast<std::size_t>(e.dense_layers); i < model.layer_kind.size(); ++i) model.layer_kind[i] = 1;
  return model;
}

ResolvedModel deepseek(std::int64_t layers, std::int64_t mtp_depth) {
  ResolvedModel model = mixture({.hidden = 7168, .layers = layers, .heads = 128, .kv_heads = 128, .ffn = 18432, .vocab = 129280, .head_dim = 128},
                                {.count = 256, .per_token = 8, .width = 2048, .shared = 1, .shared_width = 2048, .dense_layers = 1});
  for (LayerKind& kind : model.kinds) {
    AttentionSpec& a = kind.attention;
    a.kind = AttentionKind::mla;
    a.q_lora_rank = 1536;
    a.kv_lora_rank = 512;
    a.nope_dim = 128;
    a.rope_dim = 64;
    a.qk_dim = 192;
    a.v_dim = 128;
  }
  model.mtp_depth = mtp_depth;
  model.mtp_kind = 1;
  return model;
}

Scenario bare_scenario(ResolvedModel model, std::int64_t seq_length) {
  Scenario scenario;
  scenario.model = std::move(model);
  scenario.run.seq_length = seq_length;
  MemoryProfile& memory = scenario.profile.memory;
  memory.base_workspace_gib = 0;
  memory.layer_working_set_ffn = 0;
  memory.layer_working_set_hidden = 0;
  scenario.profile.can.vocab_padding = 1;
  scenario.cluster.device.memory.usable = {80 * kGiB};
  scenario.cluster.device.memory.usable_is_allocatable = true;
  return scenario;
}

double layer_elements(const Decoder& d) {
  const auto h = static_cast<double>(d.hidden), a = static_cast<double>(d.heads), g = static_cast<double>(d.kv_heads);
  const double head_dim = d.head_dim > 0 ? static_cast<double>(d.head_dim) : h / a;
  return h * head_dim * (2 * a + 2 * g) + (d.gated ? 3 : 2) * h * static_cast<double>(d.ffn) + 2 * h * (d.norm_bias ? 2 : 1);
}

double allocated_gib(const MemoryBreakdown& memory, int stage) { return to_gib(memory.stages.at(static_cast<std::size_t>(stage)).allocated); }

}  // namespace nd::test
