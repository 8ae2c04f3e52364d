// SPDX-License-Identifier: Apache-2.0
#include "perf/layer_time.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "perf/attention.hpp"
#include "perf/gemm.hpp"
#include "perf/stream.hpp"

namespace nd::perf {

namespace {

/// Adapters (LoRA) on top of the frozen products: 5 % of the backward [fitted on adapter rows: backward 1.05 x forward].
constexpr double kAdapterShare = 0.05;
/// Gathering a saved shard again runs beside the input-gradient product; half of it shows [fitted: backward 1.25 x the
/// forward's bytes with sequence parallelism].
constexpr double kRegatherExposed = 0.5;
constexpr double kUnquantisedBytes = 2;  ///< weights this wide need no dequantisation

/// `weight_gradient` is part of `backward`.
struct DeviceSeconds {
  double forward = 0, backward = 0, weight_gradient = 0, selective = 0;
};

bool marked(const std::vector<bool>& marks, std::size_t i) { return i < marks.size() && marks[i]; }

DeviceSeconds product_seconds(const LayerContext& context, const LayerLedger& ledger) {
  const ResolvedRun& run = context.scenario->run;
  const DeviceRates& rates = *context.rates;
  DeviceSeconds sum;
  double quantised_elements = 0;
  for (std::size_t i = 0; i < ledger.gemms.size(); ++i) {
    const Gemm& gemm = ledger.gemms[i];
    const double forward = gemm_forward_seconds(rates, gemm);
    const double input = gemm_input_gradient_seconds(rates, gemm);
    sum.forward += forward;
    if (gemm.weight && run.frozen_base) {
      sum.backward += input * (1.0 + kAdapterShare);
    } else {
      const double other = gemm_weight_gradient_seconds(rates, gemm);
      sum.backward += input + other;
      if (gemm.weight) sum.weight_gradient += other;
    }
    if (marked(ledger.selective_gemms, i)) sum.selective += forward;
    if (gemm.weight && (gemm.kind == GemmClass::dense || gemm.kind == GemmClass::expert)) quantised_elements += gemm.count * gemm.n * gemm.k;
  }
  if (run.frozen_base && run.base_weight_bytes < kUnquantisedBytes) {
    const double seconds = context.scenario->profile.time.dequantisation_bytes * quantised_elements / rates.memory;
    sum.forward += seconds;
    sum.backward += seconds;
  }
  return sum;
}

DeviceSeconds device_seconds(const LayerContext& context, const LayerLedger& ledger) {
  const DeviceRates& rates = *context.rates;
  DeviceSeconds sum = product_seconds(context, ledger);
  for (std::size_t i = 0; i < ledger.attention.size(); ++i) {
    const double forward = attention_forward_seconds(rates, ledger.attention[i]);
    sum.forward += forward;
    sum.backward += attention_backward_seconds(rates, ledger.attention[i]);
    if (marked(ledger.selective_attention, i)) sum.selective += forward;
  }
  for (std::size_t i = 0; i < ledger.streams.size(); ++i) {
    const double forward = stream_forward_seconds(rates, ledger.streams[i]);
    sum.forward += forward;
    sum.backward += stream_backward_seconds(rates, ledger.streams[i]);
    if (marked(ledger.selective_streams, i)) sum.selective += forward;
  }
  return sum;
}

/// Part, place and exposed share of one kind of group.
struct GroupRule {
  TimePart part;
  const Placement* place;
  double exposed, volume;
};

GroupRule rule_of(const LayerContext& context, GroupKind group) {
  const TimeProfile& time = context.scenario->profile.time;
  switch (group) {
    case GroupKind::cp:
      return {TimePart::cp_comm, &context.groups.cp, time.cp_exposed, 1.0};
    case GroupKind::ep:
      return {TimePart::ep_comm, &context.groups.ep, time.ep_exposed, 1.0};
    case GroupKind::etp:
      return {TimePart::tp_comm, &context.groups.etp, time.tp_exposed, time.tp_volume_factor};
    default:
      return {TimePart::tp_comm, &context.groups.tp, time.tp_exposed, time.tp_volume_factor};
  }
}

void add_collectives(const LayerContext& context, const LayerLedger& ledger, std::int64_t experts_per_token, LayerTime& time) {
  const Scenario& scenario = *context.scenario;
  const bool once_per_unit = scenario.profile.memory.dispatcher == Dispatcher::deduplicating;
  for (const CollectiveWork& work : ledger.collectives) {
    const GroupRule rule = rule_of(context, work.group);
    CollectiveRequest request{.kind = work.kind, .bytes = work.bytes * rule.volume, .group = *rule.place};
    if (once_per_unit && work.group == GroupKind::ep) request.copies_per_token = experts_per_token;
    const double seconds = collective_seconds(request, scenario.cluster.device.levels);
    const double exposed = seconds * rule.exposed * (work.regather ? kRegatherExposed : 1.0);
    const double hidden = std::max(0.0, seconds - exposed);  // a share above 1 is cost around the transfer, nothing hides
    time.forward.at(rule.part) += work.forward * exposed;
    time.forward.hidden_at(rule.part) += work.forward * hidden;
    time.backward.at(rule.part) += work.backward * exposed;
    time.backward.hidden_at(rule.part) += work.backward * hidden;
  }
}

/// Token exchanges run behind the compute of another micro-batch: what does not fit shows, what hides slows that compute.
void hide_exchange(const LayerContext& context, double compute, PartSeconds& pass) {
  const Scenario& scenario = *context.scenario;
  double& exposed = pass.at(TimePart::ep_comm);
  const double hidden = std::min(exposed, context.ep_overlap * compute);
  if (hidden <= 0) return;
  exposed -= hidden * (1.0 - scenario.cluster.device.compute.overlap_slowdown);
  pass.hidden_at(TimePart::ep_comm) += hidden;
}

/// To launch the forward of a layer.
double host_seconds(const LayerContext& context, const LayerTraits& traits) {
  const TimeProfile& profile = context.scenario->profile.time;
  double layer = profile.host_layer_ms * 1e-3 * (traits.experts ? profile.host_moe_factor : 1.0);
  // With more than half a node in a TP group its processes sit on both sockets, and every collective waits for the last of them.
  const std::int64_t node = context.scenario->cluster.device.node_devices;
  if (context.groups.tp.ranks > 1 && 2 * context.groups.tp.ranks > node) layer *= profile.host_wide_tp_factor;
  return layer + profile.host_ring_step_ms * 1e-3 * context.ring_steps;
}

/// Seconds a pass takes beyond what keeps the device busy: (busy^p + host^p)^(1/p) - busy. With p large the pass takes the
/// longer of the two; in between, a pass has operators that wait for their launch and others that hide launches.
double host_wait(double busy, double host, double blend) {
  if (host <= 0) return 0;
  const double longer = std::max(busy, host), shorter = std::min(busy, host);
  return longer * std::pow(1.0 + std::pow(shorter / longer, blend), 1.0 / blend) - busy;
}

}  // namespace

LayerTime layer_time(const LayerContext& context, const LayerLedger& ledger, const LayerTraits& traits) {
  const TimeProfile& profile = context.scenario->profile.time;
  LayerTime time;
  time.dense_elements = ledger.parameter_elements(ParameterClass::tensor) + ledger.parameter_elements(ParameterClass::replicated);
  time.expert_elements = ledger.parameter_elements(ParameterClass::expert);

  const DeviceSeconds device = device_seconds(context, ledger);
  add_collectives(context, ledger, traits.experts_per_token, time);
  time.forward.at(TimePart::fw_compute) = device.forward;
  time.backward.at(TimePart::bw_compute) = device.backward;
  time.weight_gradient = device.weight_gradient;
  hide_exchange(context, device.forward, time.forward);
  hide_exchange(context, device.backward, time.backward);

  const double host = traits.launched_per_layer ? host_seconds(context, traits) : 0;
  const double backward_busy = time.backward.total();
  const double backward_host = host * profile.host_backward_ratio;
  const double backward_wait = host_wait(backward_busy, backward_host, profile.host_blend);
  time.forward.at(TimePart::other) = host_wait(time.forward.total(), host, profile.host_blend);
  time.backward.at(TimePart::other) = backward_wait;

  time.full_recompute = time.forward;
  std::swap(time.full_recompute.at(TimePart::fw_compute), time.full_recompute.at(TimePart::recompute));
  // A selectively recomputed layer launches few operators more, inside the same backward: it eats into the wait first.
  time.selective_recompute.at(TimePart::recompute) = device.selective;
  time.selective_recompute.at(TimePart::other) =
      host_wait(backward_busy + device.selective, backward_host, profile.host_blend) - backward_wait;
  return time;
}

}  // namespace nd::perf
