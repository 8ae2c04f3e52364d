// SPDX-License-Identifier: Apache-2.0
#include "nd/fingerprint.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "nd/ops.hpp"
#include "nd/version.hpp"
#include "run/profile_fields.hpp"

namespace nd {

namespace {

/// FNV-1a, 64 bits (Fowler, Noll, Vo): tells states of a file apart, guards against nobody.
class Digest {
 public:
  template <class T>
  void add(const T& value) {
    for (const char c : fmt::format("{};", value)) {
      state_ ^= static_cast<unsigned char>(c);
      state_ *= 0x100000001b3ULL;
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::string device_digest(const Cluster& cluster) {
  Digest digest;
  const DeviceType& device = cluster.device;
  digest.add(device.name);
  for (const auto& peak : device.peak) digest.add(peak.value);
  const DeviceMemory& memory = device.memory;
  for (const Bytes bytes : {memory.nominal, memory.usable, memory.runtime_context, memory.per_communicator, memory.product_workspace,
                            memory.usual_budget.value_or(Bytes{})})
    digest.add(bytes.value);
  digest.add(memory.bandwidth.value);
  const ComputeModel& compute = device.compute;
  for (const double value : {compute.gemm_fraction, compute.operand_exposure, compute.memory_fraction,
                             compute.vector_bandwidth.value_or(BytesPerSecond{}).value, compute.attention_backward_ratio,
                             compute.attention_half_length, compute.low_precision_share, compute.fp4_share, compute.grouped_gemm_fraction,
                             compute.misaligned_penalty, compute.overlap_slowdown})
    digest.add(value);
  for (const std::int64_t value : {compute.alignment, compute.tile_m, compute.tile_n, compute.cores, device.node_devices}) digest.add(value);
  for (const auto& [name, share] : compute.attention_fraction) {
    digest.add(name);
    digest.add(share);
  }
  for (const TopologyLevel& level : device.levels) {
    digest.add(level.devices);
    digest.add(level.full_mesh ? 1 : 0);
    for (const double value : {level.bandwidth.value, level.bus.value, level.efficiency, level.latency.value, level.latency_per_rank.value,
                               level.latency_per_doubling.value})
      digest.add(value);
    for (const double factor : level.bus_factor) digest.add(factor);
  }
  return digest.text();
}

template <class Section>
void add_section(Digest& digest, const Section& section, std::span<const run::ProfileField<Section>> fields) {
  for (const auto& field : fields) {
    digest.add(field.name);
    std::visit(
        [&](const auto member) {
          using Value = std::remove_cvref_t<decltype(section.*member)>;
          if constexpr (std::is_enum_v<Value>) digest.add(static_cast<int>(section.*member));
          else digest.add(section.*member);
        },
        field.member);
  }
}

std::string framework_digest(const FrameworkProfile& profile) {
  Digest digest;
  digest.add(profile.name);
  digest.add(profile.version);
  add_section(digest, profile.memory, run::memory_fields());
  add_section(digest, profile.time, run::time_fields());
  add_section(digest, profile.can, run::capability_fields());
  return digest.text();
}

/// By what the model costs, not by how its file is written.
std::string model_digest(const ResolvedModel& model) {
  Digest digest;
  for (const std::int64_t value : {model.hidden_size, model.vocab_size, model.layers(), model.mtp_depth, model.vision_parameters}) digest.add(value);
  const ParameterCount count = count_parameters(model);
  for (const std::int64_t value : {count.total, count.active, count.mtp, count.embedding, count.head}) digest.add(value);
  for (const std::int64_t value : count.per_kind) digest.add(value);
  for (const std::int64_t length : {1024, 65536}) digest.add(model_flops_per_token(model, length, true).value);
  return digest.text();
}

std::string factors_digest(const PriceFactors& factors) {
  if (factors.identity()) return "none";
  Digest digest;
  for (const double factor : factors.time) digest.add(factor);
  digest.add(factors.memory);
  return digest.text();
}

}  // namespace

PriceFingerprint fingerprint(const Scenario& scenario, const PriceFactors& factors) {
  return {.model = model_digest(scenario.model),
          .device = device_digest(scenario.cluster),
          .framework = framework_digest(scenario.profile),
          .calibration = factors_digest(factors),
          .version = kVersion};
}

}  // namespace nd
