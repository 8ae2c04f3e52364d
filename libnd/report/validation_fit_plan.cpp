// SPDX-License-Identifier: Apache-2.0
#include "report/validation_fit_plan.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"

namespace nd::report {
namespace {

using formats::ConfigNode;
using formats::MapReader;
using Sink = std::vector<Diagnostic>;

struct ComputeMember {
  const char* name;
  double ComputeModel::*at;
};
constexpr ComputeMember kComputeMembers[] = {
    {"gemm_fraction", &ComputeModel::gemm_fraction},
    {"operand_exposure", &ComputeModel::operand_exposure},
    {"memory_fraction", &ComputeModel::memory_fraction},
    {"attention_backward_ratio", &ComputeModel::attention_backward_ratio},
    {"attention_half_length", &ComputeModel::attention_half_length},
    {"low_precision_share", &ComputeModel::low_precision_share},
    {"fp4_share", &ComputeModel::fp4_share},
    {"grouped_gemm_fraction", &ComputeModel::grouped_gemm_fraction},
    {"misaligned_penalty", &ComputeModel::misaligned_penalty},
    {"overlap_slowdown", &ComputeModel::overlap_slowdown},
};

struct ProfileMember {
  const char* name;
  double TimeProfile::*at;
};
constexpr ProfileMember kProfileMembers[] = {
    {"traffic_factor", &TimeProfile::traffic_factor},
    {"library_factor", &TimeProfile::library_factor},
    {"host_layer_ms", &TimeProfile::host_layer_ms},
    {"host_moe_factor", &TimeProfile::host_moe_factor},
    {"host_wide_tp_factor", &TimeProfile::host_wide_tp_factor},
    {"host_blend", &TimeProfile::host_blend},
    {"host_backward_ratio", &TimeProfile::host_backward_ratio},
    {"host_ring_step_ms", &TimeProfile::host_ring_step_ms},
    {"step_overhead_ms", &TimeProfile::step_overhead_ms},
    {"tp_exposed", &TimeProfile::tp_exposed},
    {"ep_exposed", &TimeProfile::ep_exposed},
    {"cp_exposed", &TimeProfile::cp_exposed},
    {"dp_overlap", &TimeProfile::dp_overlap},
    {"fsdp_overlap", &TimeProfile::fsdp_overlap},
    {"tp_volume_factor", &TimeProfile::tp_volume_factor},
    {"moe_traffic_factor", &TimeProfile::moe_traffic_factor},
    {"broadcast_per_rank_ms", &TimeProfile::broadcast_per_rank_ms},
};

const ConfigNode* list_of(MapReader& reader, const char* key) {
  const ConfigNode* list = reader.child(key);
  if (list != nullptr && list->is_sequence()) return list;
  reader.error(key, Errc::wrong_type, "must be a list");
  return nullptr;
}

FitGroup read_group(const ConfigNode& node, Sink& sink) {
  FitGroup group;
  MapReader reader(node, sink);
  reader.require("name", "the group");
  group.name = reader.string("name").value_or("");
  group.devices = reader.strings("devices").value_or(std::vector<std::string>{});
  group.framework = reader.string("framework").value_or("");
  group.versions = reader.strings("versions").value_or(std::vector<std::string>{});
  if (group.devices.empty() == group.framework.empty())
    reader.error("name", Errc::missing_field, "a group is either devices or a framework");
  if (const ConfigNode* priors = reader.child("priors"); priors != nullptr) {
    MapReader values(*priors, sink);
    for (const auto& [member, value] : priors->members)
      if (const auto number = values.real(member); number && *number > 0) group.priors[member] = *number;
      else values.error(member, Errc::out_of_range, "a prior is a positive number");
    values.finish();
  }
  reader.finish();
  return group;
}

FitMember read_member(const ConfigNode& node, Sink& sink) {
  FitMember member;
  MapReader reader(node, sink);
  reader.require("member", "the constant");
  reader.require("reading", "what the constant means physically");
  member.member = reader.string("member").value_or("");
  member.feature = reader.string("feature").value_or("");
  member.reading = reader.string("reading").value_or("");
  member.of = reader.string("of").value_or("");
  member.prior = reader.real("prior").value_or(0.0);
  member.width = reader.real("width").value_or(0.0);
  member.stated_only = reader.boolean("stated_only").value_or(false);
  if (member.of != "devices" && member.of != "frameworks" && member.of != "all devices")
    reader.error("of", Errc::out_of_range, "must be devices, frameworks or all devices");
  if (member.width <= 0) reader.error("width", Errc::out_of_range, "a prior width is a positive number");
  reader.finish();
  return member;
}

/// "levels.<name>.<figure>" of a device.
double* level_address(DeviceType& device, const std::string& member) {
  const std::vector<std::string> path = core::split(member, '.');
  if (path.size() != 3) return nullptr;
  for (TopologyLevel& level : device.levels) {
    if (level.name != path[1]) continue;
    if (path[2] == "efficiency") return &level.efficiency;
    if (path[2] == "latency") return &level.latency.value;
  }
  return nullptr;
}

bool has_experts(const Scenario& scenario) {
  const auto& kinds = scenario.model.kinds;
  return std::any_of(kinds.begin(), kinds.end(), [](const LayerKind& kind) { return kind.ffn.kind == FfnKind::moe; });
}

}  // namespace

bool fit_member_used(const Scenario& scenario, const std::string& member) {
  const ParallelConfig& strategy = scenario.run.strategy;
  if (member == "moe_traffic_factor" || member == "host_moe_factor" || member == "grouped_gemm_fraction") return has_experts(scenario);
  if (member == "ep_exposed") return strategy.ep > 1;
  if (member == "fsdp_overlap") return strategy.zero == ZeroLevel::parameters;
  if (member == "tp_exposed" || member == "tp_volume_factor" || member == "host_wide_tp_factor") return strategy.tp > 1;
  if (member == "cp_exposed") return strategy.cp > 1;
  if (member == "levels.node.efficiency") return scenario.cluster.devices > 1;
  if (member == "levels.scale-out.efficiency") return scenario.cluster.devices > scenario.cluster.device.node_devices;
  if (member == "low_precision_share") return scenario.run.gemm_dtype == Dtype::fp8;
  if (member == "fp4_share") return scenario.run.gemm_dtype == Dtype::fp4;
  return true;
}

bool FitGroup::covers(const Scenario& scenario) const {
  if (!framework.empty()) {
    return scenario.profile.name == framework &&
           (versions.empty() || std::find(versions.begin(), versions.end(), scenario.profile.version) != versions.end());
  }
  return covers_all_devices() || std::find(devices.begin(), devices.end(), scenario.cluster.device.name) != devices.end();
}

double* fit_member_address(Scenario& scenario, const std::string& member) {
  DeviceType& device = scenario.cluster.device;
  constexpr std::string_view kAttention = "attention_fraction.";
  if (member.starts_with(kAttention)) {
    const std::string kernel = member.substr(kAttention.size());
    if (!scenario.profile.memory.flash_attention || scenario.profile.time.attention_kernel != kernel) return nullptr;
    const auto found = device.compute.attention_fraction.find(kernel);
    return found == device.compute.attention_fraction.end() ? nullptr : &found->second;
  }
  if (member.starts_with("levels.")) return level_address(device, member);
  if (member == "vector_bandwidth") return device.compute.vector_bandwidth ? &device.compute.vector_bandwidth->value : nullptr;
  for (const ComputeMember& entry : kComputeMembers)
    if (member == entry.name) return &(device.compute.*entry.at);
  for (const ProfileMember& entry : kProfileMembers)
    if (member == entry.name) return &(scenario.profile.time.*entry.at);
  return nullptr;
}

Result<FitPlan> load_fit_plan(const DataStore& data) {
  const auto root = formats::read_document(data.root() + "/measured/fit.yaml");
  if (!root) return root.error();
  FitPlan plan;
  Sink sink;
  MapReader reader(*root, sink);
  if (reader.string("schema").value_or("") != "nd/fit/1") reader.error("schema", Errc::unsupported, "must be nd/fit/1");
  plan.loss_scale = reader.real("loss_scale").value_or(plan.loss_scale);
  plan.rows_per_file = reader.real("rows_per_file").value_or(plan.rows_per_file);
  plan.never = reader.strings("never").value_or(std::vector<std::string>{});
  if (const ConfigNode* groups = list_of(reader, "groups"))
    for (const ConfigNode& item : groups->items) plan.groups.push_back(read_group(item, sink));
  if (const ConfigNode* members = list_of(reader, "constants"))
    for (const ConfigNode& item : members->items) plan.members.push_back(read_member(item, sink));
  reader.finish();
  if (!sink.empty()) return Error(std::move(sink));
  return plan;
}

}  // namespace nd::report
