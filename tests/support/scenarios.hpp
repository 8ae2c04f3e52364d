// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nd/scenario.hpp"

// Hand-made scenarios for tests of the search: small models with known divisors, one invented device.
namespace nd::testing {

/// Softmax attention with 8 heads of 16, 2 KV heads; 6 layers; feed-forward width 96, gated; vocabulary 512.
inline ResolvedModel small_dense() {
  LayerKind kind;
  kind.attention.heads = 8;
  kind.attention.kv_heads = 2;
  kind.attention.qk_dim = 16;
  kind.attention.v_dim = 16;
  kind.ffn.width = 96;
  ResolvedModel model;
  model.name = "small-dense";
  model.model_type = "llama";
  model.hidden_size = 128;
  model.vocab_size = 512;
  model.max_positions = 4096;
  model.kinds = {kind};
  model.layer_kind.assign(6, 0);
  return model;
}

/// The dense model with 12 experts of width 48, 2 per token, in every layer.
inline ResolvedModel small_moe() {
  ResolvedModel model = small_dense();
  model.name = "small-moe";
  auto& ffn = model.kinds.front().ffn;
  ffn.kind = FfnKind::moe;
  ffn.width = 0;
  ffn.experts = 12;
  ffn.experts_per_token = 2;
  ffn.expert_width = 48;
  return model;
}

/// The shape of Llama-3.1-8B: 32 layers, hidden 4096, 32 heads of 128, 8 KV heads, width 14336, vocabulary 128256.
inline ResolvedModel llama_8b() {
  ResolvedModel model = small_dense();
  model.name = "llama-8b";
  auto& kind = model.kinds.front();
  kind.attention.heads = 32;
  kind.attention.kv_heads = 8;
  kind.attention.qk_dim = 128;
  kind.attention.v_dim = 128;
  kind.ffn.width = 14336;
  model.hidden_size = 4096;
  model.vocab_size = 128256;
  model.max_positions = 131072;
  model.layer_kind.assign(32, 0);
  return model;
}

/// An invented accelerator: 64 GiB, 300 TFLOP/s in 16 bit, 1.6 TB/s, 8 per node.
inline DeviceType test_device() {
  DeviceType device;
  device.name = "test-64";
  device.title = "Test accelerator";
  device.vendor = "test";
  device.peak = {FlopsPerSecond{75e12}, FlopsPerSecond{150e12}, FlopsPerSecond{300e12}, FlopsPerSecond{300e12}, {}, {}};
  device.memory.nominal = Bytes{64 * kGiB};
  device.memory.usable = Bytes{60 * kGiB};
  device.memory.runtime_context = Bytes{0.5 * kGiB};
  device.memory.bandwidth = BytesPerSecond{1.6e12};
  device.compute.attention_fraction = {{"flash2", 0.5}, {"flash3", 0.6}, {"fused", 0.4}};
  TopologyLevel node;
  node.name = "node";
  node.devices = 8;
  node.bandwidth = BytesPerSecond{300e9};
  node.bus = BytesPerSecond{250e9};
  node.latency = Seconds{10e-6};
  TopologyLevel fabric = node;
  fabric.name = "fabric";
  fabric.devices = 0;
  fabric.bandwidth = BytesPerSecond{50e9};
  fabric.bus = BytesPerSecond{45e9};
  fabric.latency = Seconds{20e-6};
  device.levels = {node, fabric};
  return device;
}

struct ScenarioSize {
  std::int64_t devices = 8, global_batch = 8, seq_length = 64;
};

inline Scenario make_scenario(ResolvedModel model, const ScenarioSize& size) {
  Scenario out;
  out.model = std::move(model);
  out.run.devices = size.devices;
  out.run.global_batch_size = size.global_batch;
  out.run.seq_length = size.seq_length;
  out.profile.name = "test-framework";
  out.profile.version = "1";
  out.cluster.device = test_device();
  out.cluster.devices = size.devices;
  return out;
}

}  // namespace nd::testing
