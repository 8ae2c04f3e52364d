// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/device.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "formats/figure.hpp"

namespace nd::formats {
namespace {

using enum FieldType;

/// The schema. What has a constant of nd/device.hpp behind it is read below; the rest is evidence that travels with the file
/// and is checked for units and sources all the same.
constexpr FieldRule kDeviceRules[] = {
    {"schema", text, true},
    {"name", text, true},
    {"title", text, true},
    {"vendor", text, true},
    {"aliases", texts, true},
    {"device_is", text, true},
    {"compute.peak.fp32", rate},
    {"compute.peak.tf32", rate},
    {"compute.peak.fp16", rate},
    {"compute.peak.bf16", rate},
    {"compute.peak.fp8", rate},
    {"compute.peak.fp4", rate},
    {"compute.vector.fp32", rate},
    {"compute.vector.fp16", rate},
    {"compute.vector.bf16", rate},
    {"compute.unsupported", texts, true},
    {"compute.cores.cube", integer},
    {"compute.cores.vector", integer},
    {"compute.cores.clock", text},
    {"compute.cores.flops_per_cube_core_and_clock", integer},
    {"compute.matmul.best_fraction", fraction},
    {"compute.matmul.training_fraction", fraction},
    {"compute.matmul.fp8_fraction", fraction},
    {"compute.matmul.tiers", table},
    {"compute.matmul.by_min_dim", table},
    {"compute.matmul.grouped", table},
    {"compute.attention.convention", text},
    {"compute.attention.forward", table},
    {"compute.attention.backward", table},
    {"compute.attention.training_forward", fraction},
    {"compute.attention.training_backward", fraction},
    {"compute.operator_overhead.kernel", seconds},
    {"compute.operator_overhead.matrix", seconds},
    {"compute.operator_overhead.vector", seconds},
    {"compute.operator_overhead.collective", seconds},
    {"compute.operator_overhead.memory_operator", seconds},
    {"compute.operator_overhead.operator", seconds},
    {"memory.nominal", bytes, true},
    {"memory.usable", bytes, true},
    {"memory.usable_is", text, true},
    {"memory.monitor_total", bytes},
    {"memory.bandwidth", bandwidth, true},
    {"memory.bandwidth_fraction", fraction},
    {"overheads.runtime_context", bytes, true},
    {"overheads.process_group", bytes},
    {"overheads.per_communicator", bytes, true},
    {"overheads.product_workspace", bytes},
    {"overheads.first_all_to_all", bytes},
    {"overheads.channel_buffer", bytes},
    {"overheads.reserved_over_allocated", number},
    {"overheads.usual_budget", bytes},
    {"network.node_size", integer, true},
    {"network.levels.#.name", text, true},
    {"network.levels.#.devices", extent, true},
    {"network.levels.#.topology", text, true},
    {"network.levels.#.bandwidth", bandwidth, true},
    {"network.levels.#.pair_bandwidth", bandwidth},
    {"network.levels.#.pair_copy", bandwidth},
    {"network.levels.#.nic", bandwidth},
    {"network.levels.#.node_total", bandwidth},
    {"network.levels.#.achieved_share", fraction},
    {"network.levels.#.faster_than_inner", text},
    {"network.levels.#.latency.per_hop", seconds},
    {"network.levels.#.latency.per_call", seconds},
    {"network.levels.#.small_message_time", seconds},
    {"network.levels.#.bus_basis", text},
    {"network.levels.#.bus_bandwidth.all_reduce", bandwidth, true},
    {"network.levels.#.bus_bandwidth.all_gather", bandwidth},
    {"network.levels.#.bus_bandwidth.reduce_scatter", bandwidth},
    {"network.levels.#.bus_bandwidth.all_to_all", bandwidth},
    {"network.levels.#.bus_bandwidth.send_receive", bandwidth},
    {"network.levels.#.bus_bandwidth.broadcast", bandwidth},
    {"network.levels.#.bus_bandwidth.token_dispatch", bandwidth},
    {"network.levels.#.bus_bandwidth.token_combine", bandwidth},
    {"network.levels.#.ring_all_reduce", bandwidth},
    {"network.levels.#.token_dispatch", bandwidth},
    {"network.levels.#.token_combine", bandwidth},
    {"network.levels.#.alpha_beta_model.bandwidth", bandwidth},
    {"network.levels.#.alpha_beta_model.latency", seconds},
    {"network.levels.#.group_share", table},
    {"network.levels.#.by_group", table},
    {"network.levels.#.by_group_all_reduce", table},
    {"network.levels.#.by_ranks", table},
    {"network.levels.#.by_ranks_measured", table},
    {"network.levels.#.by_ranks_all_gather", table},
    {"network.levels.#.by_ranks_all_to_all", table},
    {"network.levels.#.by_size", table},
    {"network.levels.#.by_size_ring", table},
    {"network.levels.#.by_size_all_reduce", table},
    {"network.levels.#.by_size_all_gather", table},
    {"network.levels.#.by_size_reduce_scatter", table},
    {"network.levels.#.by_size_all_to_all", table},
    {"network.levels.#.fits", table},
    {"host_link.nominal", bandwidth},
    {"host_link.h2d", bandwidth},
    {"host_link.d2h", bandwidth},
    {"host_link.copy_cost", seconds_per_byte},
    {"host_link.devices_per_switch", integer},
    {"overlap.compute_slowdown", number},
    {"overlap.communication_slowdown", number},
    {"overlap.processor_share_node", number},
    {"overlap.processor_share_network", number},
    {"step_model.gemm_fraction", fraction, true},
    {"step_model.operand_exposure", number, true},
    {"step_model.memory_fraction", fraction, true},
    {"step_model.vector_bandwidth", bandwidth},
    {"step_model.attention_fraction.*", fraction},
    {"step_model.attention_backward_ratio", fraction, true},
    {"step_model.attention_half_length", number, true},
    {"step_model.low_precision_share", fraction, true},
    {"step_model.fp4_share", fraction, true},
    {"step_model.grouped_gemm_fraction", fraction, true},
    {"step_model.misaligned_penalty", number, true},
    {"step_model.alignment", count, true},
    {"step_model.tile_m", count, true},
    {"step_model.tile_n", count, true},
    {"step_model.cores", count, true},
    {"step_model.overlap_slowdown", number, true},
    {"step_model.levels.*.bus", bandwidth},
    {"step_model.levels.*.efficiency", fraction, true},
    {"step_model.levels.*.latency", seconds, true},
    {"step_model.levels.*.latency_per_rank", seconds, true},
    {"step_model.levels.*.latency_per_doubling", seconds, true},
    {"step_model.levels.*.bus_factor.all_reduce", number},
    {"step_model.levels.*.bus_factor.all_gather", number},
    {"step_model.levels.*.bus_factor.reduce_scatter", number},
    {"step_model.levels.*.bus_factor.all_to_all", number},
    {"step_model.levels.*.bus_factor.send_receive", number},
    {"step_model.levels.*.bus_factor.broadcast", number},
    {"reference_model.note", text},
    {"reference_model.levels", table},
    {"reference_model.host_link", bandwidth},
    {"reference_model.sustained", rate},
    {"reference_model.overlap", fraction},
    {"price_per_hour", number},
    {"power_watts", number},
    {"remarks", texts},
};

/// Two statements of one figure (a NIC in Gbit/s, its bandwidth in GB/s, the node's total) may differ by rounding only.
constexpr double kSameFigure = 0.05;

class DeviceBuilder {
 public:
  explicit DeviceBuilder(const ConfigNode& root) : root_(root) {}

  [[nodiscard]] Result<DeviceType> build() {
    check_schema(root_, "nd/device/1", sink_);
    map_ = read_fields(root_, kDeviceRules, sink_);
    read_identity();
    read_peaks();
    read_memory();
    read_compute();
    read_levels();
    read_host_link();
    if (const Field* price = map_.find("price_per_hour")) device_.price_per_hour = price->number;
    if (const Field* power = map_.find("power_watts")) device_.power_watts = power->number;
    for (const auto& [path, field] : map_.fields) {
      if (field.source) device_.sources.emplace(path, *field.source);
    }
    if (has_error(sink_)) return Error(std::move(sink_));
    return std::move(device_);
  }

 private:
  void error(Errc code, std::string_view path, std::string message, std::string hint = {}) {
    const Field* field = map_.find(path);
    sink_.push_back(make_diagnostic(code, field == nullptr ? root_.where : field->where, std::move(message), std::move(hint)));
  }
  [[nodiscard]] std::int64_t whole(std::string_view path) const { return std::llround(map_.number(path)); }

  void read_identity() {
    device_.name = map_.text("name");
    device_.title = map_.text("title");
    device_.vendor = map_.text("vendor");
    if (const Field* aliases = map_.find("aliases")) device_.aliases = aliases->texts;
  }

  /// peak and unsupported together name every data type once, so that a forgotten peak is not read as "cannot".
  void read_peaks() {
    const Field* unsupported = map_.find("compute.unsupported");
    std::vector<std::string> without = unsupported == nullptr ? std::vector<std::string>{} : unsupported->texts;
    bool any = false;
    for (int i = 0; i < kDtypeCount; ++i) {
      const std::string name = to_text(static_cast<Dtype>(i));
      const Field* peak = map_.find("compute.peak." + name);
      const auto listed = std::find(without.begin(), without.end(), name);
      if (peak == nullptr && listed == without.end()) {
        error(Errc::missing_field, "compute.unsupported", "no peak for " + name, "state compute.peak." + name + " or list it as unsupported");
      }
      if (peak != nullptr && listed != without.end()) {
        error(Errc::conflict, "compute.unsupported", name + " has a peak and is listed as unsupported");
      }
      if (listed != without.end()) without.erase(listed);
      if (peak == nullptr) continue;
      any = any || peak->number > 0;
      device_.peak[static_cast<std::size_t>(i)] = {peak->number};
    }
    for (const std::string& name : without) {
      error(Errc::out_of_range, "compute.unsupported", "'" + name + "' is no data type, or listed twice",
            core::name_hint(name, {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}));
    }
    if (!any) error(Errc::missing_field, "name", "the device has no peak at all");
  }

  void read_memory() {
    DeviceMemory& memory = device_.memory;
    memory.nominal = {map_.number("memory.nominal")};
    memory.usable = {map_.number("memory.usable")};
    memory.bandwidth = {map_.number("memory.bandwidth")};
    memory.runtime_context = {map_.number("overheads.runtime_context")};
    memory.per_communicator = {map_.number("overheads.per_communicator")};
    if (const Field* workspace = map_.find("overheads.product_workspace")) memory.product_workspace = {workspace->number};
    if (const Field* budget = map_.find("overheads.usual_budget")) memory.usual_budget = Bytes{budget->number};
    const std::string basis = map_.text("memory.usable_is");
    memory.usable_is_allocatable = basis == "allocatable";
    if (!basis.empty() && basis != "allocatable" && basis != "driver_total") {
      error(Errc::out_of_range, "memory.usable_is", "'" + basis + "' is not known", core::name_hint(basis, {"allocatable", "driver_total"}));
    }
    // Makers write GB on the box where GiB are inside, hence the factor below.
    if (map_.find("memory.bandwidth") != nullptr && memory.bandwidth.value <= 0) error(Errc::out_of_range, "memory.bandwidth", "must be above 0");
    if (memory.usable.value > memory.nominal.value * kGiB / kGB) {
      error(Errc::conflict, "memory.usable", "usable memory is larger than the nominal memory", "GB is 10^9 bytes, GiB 2^30");
    }
  }

  void read_compute() {
    ComputeModel& compute = device_.compute;
    const struct {
      std::string_view path;
      double ComputeModel::* member;
    } reals[] = {
        {"step_model.gemm_fraction", &ComputeModel::gemm_fraction},
        {"step_model.operand_exposure", &ComputeModel::operand_exposure},
        {"step_model.memory_fraction", &ComputeModel::memory_fraction},
        {"step_model.attention_backward_ratio", &ComputeModel::attention_backward_ratio},
        {"step_model.attention_half_length", &ComputeModel::attention_half_length},
        {"step_model.low_precision_share", &ComputeModel::low_precision_share},
        {"step_model.fp4_share", &ComputeModel::fp4_share},
        {"step_model.grouped_gemm_fraction", &ComputeModel::grouped_gemm_fraction},
        {"step_model.misaligned_penalty", &ComputeModel::misaligned_penalty},
        {"step_model.overlap_slowdown", &ComputeModel::overlap_slowdown},
    };
    for (const auto& row : reals) compute.*row.member = map_.number(row.path);
    compute.alignment = whole("step_model.alignment");
    compute.tile_m = whole("step_model.tile_m");
    compute.tile_n = whole("step_model.tile_n");
    compute.cores = whole("step_model.cores");
    if (const Field* vector = map_.find("step_model.vector_bandwidth")) compute.vector_bandwidth = BytesPerSecond{vector->number};
    constexpr std::string_view kKernels = "step_model.attention_fraction.";
    for (auto it = map_.fields.lower_bound(kKernels); it != map_.fields.end() && it->first.starts_with(kKernels); ++it) {
      compute.attention_fraction.emplace(it->first.substr(kKernels.size()), it->second.number);
    }
    // The kernels that framework profiles name; a device without one of its own states what stands in.
    for (const char* kernel : {"flash2", "flash3", "fused"}) {
      if (!compute.attention_fraction.contains(kernel)) {
        error(Errc::missing_field, "name", fmt::format("'{}{}' is missing", kKernels, kernel));
      }
    }
  }

  void read_levels() {
    device_.node_devices = std::max<std::int64_t>(1, whole("network.node_size"));
    const auto names = map_.lists.find("network.levels");
    if (names == map_.lists.end() || names->second.empty()) {
      error(Errc::missing_field, "network.node_size", "'network.levels' is missing or empty");
      return;
    }
    for (const std::string& name : names->second) {
      read_level(name);
      check_level(name);
    }
    check_step_levels(names->second);
    const TopologyLevel& last = device_.levels.back();
    if (last.devices != 0) error(Errc::out_of_range, "network.levels." + last.name + ".devices", "the outermost level must be unbounded");
  }

  void read_level(const std::string& name) {
    const std::string base = "network.levels." + name + ".";
    const std::string step = "step_model.levels." + name + ".";
    TopologyLevel level;
    level.name = name;
    level.devices = whole(base + "devices");
    level.bandwidth = {map_.number(base + "bandwidth")};
    level.full_mesh = map_.text(base + "topology") == "full_mesh";
    const double all_reduce = map_.number(base + "bus_bandwidth.all_reduce");
    level.bus = {map_.number(step + "bus", all_reduce)};
    for (int i = 0; i < kCollectiveKindCount; ++i) {
      const std::string kind = to_text(static_cast<CollectiveKind>(i));
      const double measured = map_.number(base + "bus_bandwidth." + kind, level.bus.value);
      const double relative = level.bus.value > 0 ? measured / level.bus.value : 1.0;
      level.bus_factor[static_cast<std::size_t>(i)] = map_.number(step + "bus_factor." + kind, relative);
    }
    level.efficiency = map_.number(step + "efficiency", 1.0);
    level.latency = {map_.number(step + "latency")};
    level.latency_per_rank = {map_.number(step + "latency_per_rank")};
    level.latency_per_doubling = {map_.number(step + "latency_per_doubling")};
    if (level.bus.value <= 0 || level.bandwidth.value <= 0) error(Errc::out_of_range, base + "bandwidth", "bandwidths must be above 0");
    device_.levels.push_back(std::move(level));
  }

  /// The trap this guards against: a figure per node written where one per device is meant, or the reverse.
  void check_level(const std::string& name) {
    const std::string base = "network.levels." + name + ".";
    const TopologyLevel& level = device_.levels.back();
    const double per_node = static_cast<double>(device_.node_devices);
    if (const Field* nic = map_.find(base + "nic"); nic != nullptr && differs(nic->number, level.bandwidth.value)) {
      error(Errc::conflict, base + "bandwidth",
            fmt::format("{} GB/s a device, but its NIC carries {} GB/s", level.bandwidth.value / kGB, nic->number / kGB),
            differs(nic->number * per_node, level.bandwidth.value) ? "200 Gbit/s are 25 GB/s" : "bandwidths are per device, not per node");
    }
    if (const Field* total = map_.find(base + "node_total"); total != nullptr && differs(total->number, level.bandwidth.value * per_node)) {
      error(Errc::conflict, base + "bandwidth",
            fmt::format("{} devices of a node with {} GB/s each do not give the stated node total of {} GB/s", device_.node_devices,
                        level.bandwidth.value / kGB, total->number / kGB),
            "bandwidths are per device, not per node");
    }
    if (device_.levels.size() < 2) return;
    const TopologyLevel& inner = device_.levels[device_.levels.size() - 2];
    if (inner.devices == 0 || (level.devices != 0 && level.devices <= inner.devices)) {
      error(Errc::out_of_range, base + "devices", "levels run from the inside out, each with more devices than the one before");
    }
    if (level.bandwidth > inner.bandwidth && map_.find(base + "faster_than_inner") == nullptr) {
      error(Errc::conflict, base + "bandwidth",
            fmt::format("{} GB/s is more than the {} GB/s of the level '{}' inside it", level.bandwidth.value / kGB,
                        inner.bandwidth.value / kGB, inner.name),
            "bandwidths are per device; if it is true, say why in faster_than_inner");
    }
  }
  [[nodiscard]] static bool differs(double a, double b) { return std::abs(a - b) > kSameFigure * std::max(a, b); }

  /// Levels of the step model and of the network are the same set.
  void check_step_levels(const std::vector<std::string>& names) {
    const ConfigNode* step = root_.find("step_model");
    const ConfigNode* levels = step == nullptr ? nullptr : step->find("levels");
    for (const std::string& name : names) {
      if (levels == nullptr || levels->find(name) == nullptr) {
        error(Errc::missing_field, "network.levels." + name + ".name", "'step_model.levels." + name + "' is missing");
      }
    }
    if (levels == nullptr) return;
    for (const auto& [name, node] : levels->members) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      sink_.push_back(make_diagnostic(Errc::unknown_key, node.where, "'" + name + "' is no level of the network", core::name_hint(name, names)));
    }
  }

  void read_host_link() {
    const Field* h2d = map_.find("host_link.h2d");
    const Field* d2h = map_.find("host_link.d2h");
    if (h2d == nullptr && d2h == nullptr) return;
    HostLink link;
    link.h2d = {h2d != nullptr ? h2d->number : d2h->number};
    link.d2h = {d2h != nullptr ? d2h->number : h2d->number};
    link.copy_cost_s_per_byte = map_.number("host_link.copy_cost");
    device_.host_link = link;
  }

  const ConfigNode& root_;
  std::vector<Diagnostic> sink_;
  FieldMap map_;
  DeviceType device_;
};

}  // namespace

Result<DeviceType> read_device(const ConfigNode& root) { return DeviceBuilder(root).build(); }

}  // namespace nd::formats
