// SPDX-License-Identifier: Apache-2.0
#include "memory/state_bytes.hpp"

#include <algorithm>

namespace nd::memory {

namespace {

constexpr double kFp32Bytes = 4;         // bytes of one fp32 element
constexpr double kAdamMomentBytes = 8;   // Adam in fp32: first and second moment
constexpr double kHalfMomentBytes = 4;   // both moments in a 16-bit type
constexpr double kByteMomentBytes = 2;   // both moments in 8 bits; block scales (1/2048) left out
constexpr std::size_t kTensor = static_cast<std::size_t>(ParameterClass::tensor);
constexpr std::size_t kReplicated = static_cast<std::size_t>(ParameterClass::replicated);
constexpr std::size_t kExpert = static_cast<std::size_t>(ParameterClass::expert);

/// Ranks over which each class is sharded once a state is sharded at all.
///   tensor and replicated: op (of dp * cp); replicated also over tp where the framework shards over both.
///   expert: its own data-parallel group dp * tp * cp / (ep * etp), split into as many replicas as the dense one.
StateRates::PerClass shard_ranks(const Scenario& scenario, const ParallelConfig& config) {
  const double op = config.op;
  const double instances = static_cast<double>(config.dp) * config.cp / op;
  StateRates::PerClass ranks{};
  ranks[kTensor] = op;
  ranks[kReplicated] = scenario.profile.memory.parameters_sharded_over_tp_and_dp ? op * config.tp : op;
  ranks[kExpert] = std::max(1.0, static_cast<double>(config.expert_dp()) / instances);
  return ranks;
}

StateRates::PerClass spread(double bytes, const StateRates::PerClass& ranks) {
  return {bytes / ranks[0], bytes / ranks[1], bytes / ranks[2]};
}

/// Bytes per parameter before sharding, with the rules of the number type applied.
struct PlainBytes {
  double weight, gradient, main, state, step_copy;
};

PlainBytes plain_bytes(const MemoryProfile& memory, Dtype compute) {
  PlainBytes out{memory.weight_bytes, memory.gradient_bytes, memory.main_bytes, memory.state_bytes, 0};
  if (compute == Dtype::fp16) {
    out.gradient = memory.fp16_gradient_bytes;
    out.step_copy = memory.fp16_step_bytes;
  } else if (compute == Dtype::fp32 || compute == Dtype::tf32) {
    // fp32 weights are their own main copy; states kept on the device are fp32 as well.
    out.weight = std::max(kFp32Bytes, out.weight);
    out.gradient = std::max(kFp32Bytes, out.gradient);
    out.main = 0;
    if (out.state > 0) out.state = std::max(kAdamMomentBytes, out.state);
  }
  return out;
}

}  // namespace

double StateRates::sum(const ElementCount& count, const PerClass& rate) { return sum(count, rate, rate); }

double StateRates::sum(const ElementCount& count, const PerClass& vector_rate, const PerClass& matrix_rate) {
  double bytes = 0;
  for (std::size_t i = 0; i < kParameterClassCount; ++i)
    bytes += (count.all[i] - count.matrix[i]) * vector_rate[i] + count.matrix[i] * matrix_rate[i];
  return bytes;
}

double moment_bytes(OptimizerKind kind, double profile_bytes, bool matrix) {
  switch (kind) {
    case OptimizerKind::adamw:
      return profile_bytes;
    case OptimizerKind::adamw_bf16_states:
      return std::min(profile_bytes, kHalfMomentBytes);
    case OptimizerKind::adamw_8bit:
      return std::min(profile_bytes, kByteMomentBytes);
    case OptimizerKind::sgd:
      return profile_bytes / 2;  // one moment; plain SGD keeps none, so this errs on the safe side
    case OptimizerKind::muon:
      return matrix ? profile_bytes / 2 : profile_bytes;
  }
  return profile_bytes;
}

StateRates state_rates(const Scenario& scenario, const ParallelConfig& config) {
  const MemoryProfile& memory = scenario.profile.memory;
  const ResolvedRun& run = scenario.run;
  const PlainBytes plain = plain_bytes(memory, run.compute_dtype);
  const StateRates::PerClass whole{1, 1, 1};
  const StateRates::PerClass shards = shard_ranks(scenario, config);
  const auto ranks_from = [&](ZeroLevel level) { return config.zero >= level ? shards : whole; };

  StateRates rates;
  const bool together = memory.optimizer_shards_parameters;
  rates.optimizer_ranks = ranks_from(ZeroLevel::optimizer);
  rates.weight_ranks = together ? rates.optimizer_ranks : ranks_from(ZeroLevel::parameters);
  const StateRates::PerClass gradient_ranks = together ? rates.optimizer_ranks : ranks_from(ZeroLevel::gradients);
  rates.weight = spread(plain.weight, rates.weight_ranks);
  rates.weight_matrix = rates.weight;

  if (run.frozen_base) {
    // The base keeps weights only. Quantisation covers the layers' matrices; tables and norms stay as they are.
    rates.weight_matrix = spread(run.base_weight_bytes, rates.weight_ranks);
    if (run.base_weight_bytes >= memory.weight_bytes) rates.weight = rates.weight_matrix;
    // Adapters: fp32 weight, gradient and two moments (16 bytes with AdamW), sharded like replicated parameters.
    rates.adapter_weight = kFp32Bytes / rates.weight_ranks[kReplicated];
    rates.adapter_gradient = kFp32Bytes / gradient_ranks[kReplicated];
    rates.adapter_moments = moment_bytes(run.optimizer, kAdamMomentBytes, true) / rates.optimizer_ranks[kReplicated];
    return rates;
  }

  rates.gradient = spread(plain.gradient, gradient_ranks);
  double main = plain.main;
  if (config.zero >= ZeroLevel::optimizer) main += memory.gradient_partition_bytes;
  rates.main = spread(main, rates.optimizer_ranks);
  rates.moments = spread(moment_bytes(run.optimizer, plain.state, false), rates.optimizer_ranks);
  rates.moments_matrix = spread(moment_bytes(run.optimizer, plain.state, true), rates.optimizer_ranks);
  rates.step_copy = spread(plain.step_copy, rates.optimizer_ranks);
  return rates;
}

}  // namespace nd::memory
