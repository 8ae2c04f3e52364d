// SPDX-License-Identifier: Apache-2.0
#include "unit/perf/fixtures.hpp"

#include <utility>

namespace nd::perf_test {

namespace {

constexpr auto kAllToAll = static_cast<std::size_t>(CollectiveKind::all_to_all);

void set_peak(DeviceType& device, double sixteen_bit, double fp32) {
  device.peak[static_cast<std::size_t>(Dtype::bf16)] = {sixteen_bit};
  device.peak[static_cast<std::size_t>(Dtype::fp16)] = {sixteen_bit};
  device.peak[static_cast<std::size_t>(Dtype::fp32)] = {fp32};
}

/// Node of 8 and a fabric with one NIC per device; latency 43 us + 8 us per rank, 30 us + 16 us per doubling across nodes.
std::vector<TopologyLevel> node_and_fabric(double bus, double node_efficiency, double nic, double nic_efficiency) {
  TopologyLevel node;
  node.name = "node";
  node.devices = 8;
  node.bandwidth = {bus};
  node.bus = {bus};
  node.bus_factor[kAllToAll] = 0.83;
  node.efficiency = node_efficiency;
  node.latency = {43e-6};
  node.latency_per_rank = {8e-6};
  TopologyLevel fabric;
  fabric.name = "scale-out";
  fabric.bandwidth = {nic};
  fabric.bus_factor[kAllToAll] = 0.83;
  fabric.efficiency = nic_efficiency;
  fabric.latency = {73e-6};
  fabric.latency_per_rank = {8e-6};
  fabric.latency_per_doubling = {16e-6};
  return {node, fabric};
}

ResolvedModel body(LayerKind kind, std::int64_t layers, std::int64_t hidden, std::int64_t vocab) {
  ResolvedModel model;
  model.hidden_size = hidden;
  model.vocab_size = vocab;
  model.kinds = {std::move(kind)};
  model.layer_kind.assign(static_cast<std::size_t>(layers), 0);
  return model;
}

LayerKind attention_of(std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads) {
  LayerKind kind;
  kind.attention.heads = heads;
  kind.attention.kv_heads = kv_heads;
  kind.attention.qk_dim = kind.attention.v_dim = hidden / heads;
  return kind;
}

}  // namespace

DeviceType a100() {
  DeviceType device;
  device.name = "a100";
  set_peak(device, 312e12, 19.5e12);
  device.memory.bandwidth = {2.039e12};
  device.compute.gemm_fraction = 0.79;
  device.compute.operand_exposure = 0.84;
  device.compute.memory_fraction = 0.84;
  device.compute.attention_fraction = {{"flash2", 0.43}};
  device.compute.cores = 108;
  device.levels = node_and_fabric(230e9, 0.96, 25e9, 0.85);
  return device;
}

DeviceType h100() {
  DeviceType device;
  device.name = "h100";
  set_peak(device, 989.4e12, 67e12);
  device.peak[static_cast<std::size_t>(Dtype::fp8)] = {1978.9e12};
  device.memory.bandwidth = {3.35e12};
  device.compute.gemm_fraction = 0.715;
  device.compute.operand_exposure = 0.93;
  device.compute.memory_fraction = 0.79;
  device.compute.attention_fraction = {{"flash3", 0.47}, {"flash2", 0.22}};
  device.compute.cores = 132;
  device.levels = node_and_fabric(360e9, 0.97, 50e9, 0.93);
  return device;
}

DeviceType ascend_a2() {
  DeviceType device;
  device.name = "a2";
  set_peak(device, 353.9e12, 88e12);
  device.memory.bandwidth = {1.6e12};
  device.compute.gemm_fraction = 0.91;
  device.compute.operand_exposure = 0.92;
  device.compute.memory_fraction = 0.64;
  device.compute.vector_bandwidth = BytesPerSecond{0.19 * 1.6e12};
  device.compute.attention_fraction = {{"fused", 0.63}};
  device.compute.cores = 24;
  device.levels = node_and_fabric(129e9, 0.91, 25e9, 0.74);
  device.levels[0].full_mesh = true;
  return device;
}

DeviceType nvl72() {
  DeviceType device = h100();
  device.name = "nvl72";
  device.node_devices = 4;
  device.levels = node_and_fabric(700e9, 1.0, 50e9, 0.71);
  device.levels[0].devices = 4;
  TopologyLevel rack = device.levels[0];
  rack.name = "rack";
  rack.devices = 72;
  device.levels.insert(device.levels.begin() + 1, rack);
  return device;
}

ResolvedModel gpt(const GptShape& shape) {
  LayerKind kind = attention_of(shape.hidden, shape.heads, shape.heads);
  kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.ffn.gated = false;
  kind.ffn.bias = true;
  kind.ffn.width = 4 * shape.hidden;
  kind.norm_bias = true;
  ResolvedModel model = body(kind, shape.layers, shape.hidden, shape.vocab);
  model.max_positions = shape.seq;
  model.learned_positions = model.tied_embeddings = model.norm_bias = true;
  model.hidden_dropout = model.attention_dropout = 0.1;
  return model;
}

ResolvedModel llama(std::int64_t layers, std::int64_t hidden, std::int64_t width, std::int64_t heads, std::int64_t kv_heads) {
  LayerKind kind = attention_of(hidden, heads, kv_heads);
  kind.ffn.width = width;
  return body(kind, layers, hidden, 32000);
}

ResolvedModel moe(std::int64_t layers) {
  LayerKind kind = attention_of(2048, 32, 4);
  kind.ffn.kind = FfnKind::moe;
  kind.ffn.experts = 64;
  kind.ffn.experts_per_token = 8;
  kind.ffn.expert_width = 1024;
  return body(kind, layers, 2048, 32000);
}

FrameworkProfile megatron_2022() {
  FrameworkProfile profile;
  profile.name = "megatron-lm-2022";
  profile.memory.flash_attention = false;
  profile.memory.gathered_inputs_kept = false;
  profile.time.traffic_factor = 0.97;
  profile.time.library_factor = 1.06;
  profile.time.host_layer_ms = 0.8;
  profile.time.step_overhead_ms = 19;
  profile.time.overlap_gradient = false;
  profile.time.reduce_bytes = 4;
  return profile;
}

FrameworkProfile fused_trainer() {
  FrameworkProfile profile;
  profile.name = "fused";
  return profile;
}

Scenario scenario_of(ResolvedModel model, DeviceType device, FrameworkProfile profile, std::int64_t devices, std::int64_t seq) {
  Scenario scenario;
  scenario.run.hidden_dropout = model.hidden_dropout;
  scenario.run.attention_dropout = model.attention_dropout;
  scenario.run.devices = devices;
  scenario.run.seq_length = seq;
  scenario.model = std::move(model);
  scenario.cluster = {std::move(device), devices};
  scenario.profile = std::move(profile);
  return scenario;
}

}  // namespace nd::perf_test
