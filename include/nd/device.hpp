// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nd/units.hpp"

namespace nd {

enum class Dtype { fp32, tf32, fp16, bf16, fp8, fp4 };
inline constexpr int kDtypeCount = 6;

enum class FigureKind { measured, datasheet, assumed, fitted };

/// Where a constant comes from. Every figure of a data file has one.
struct FigureSource {
  FigureKind kind = FigureKind::assumed;
  std::string citation;
  std::string note;
  friend bool operator==(const FigureSource&, const FigureSource&) = default;
};

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, all_to_all, send_receive, broadcast };
inline constexpr int kCollectiveKindCount = 6;

/// One tier of the network, innermost first.
struct TopologyLevel {
  std::string name;
  std::int64_t devices = 0;     ///< cumulative number of devices below this level; 0 = unbounded
  BytesPerSecond bandwidth{};   ///< per device, one direction, line rate
  BytesPerSecond bus{};         ///< large-message bus bandwidth of a ring all-reduce over the whole level, before `efficiency`
  std::array<double, kCollectiveKindCount> bus_factor{1, 1, 1, 1, 1, 1};  ///< per CollectiveKind, relative to `bus`
  bool full_mesh = false;       ///< a group of n of the N devices owns n-1 of the N-1 links
  double efficiency = 1.0;      ///< share of `bus` a training step reaches (fitted)
  Seconds latency{};            ///< fixed cost of one collective whose widest level is this one
  Seconds latency_per_rank{};   ///< added per rank of the group inside the level (saturates at 8)
  Seconds latency_per_doubling{};  ///< added per log2(number of groups of the inner level spanned)
  friend bool operator==(const TopologyLevel&, const TopologyLevel&) = default;
};

/// Constants of the step-time model for one device (docs/cost_model_time.md). Fractions are dimensionless.
struct ComputeModel {
  double gemm_fraction = 0.7;        ///< share of the dense peak a large matrix product sustains at training power
  double operand_exposure = 1.0;     ///< passes over the operands that are not hidden behind the arithmetic
  double memory_fraction = 0.8;      ///< share of HBM bandwidth a streaming kernel reaches
  std::optional<BytesPerSecond> vector_bandwidth;  ///< where element-wise kernels have a slower path than HBM (Ascend)
  std::map<std::string, double> attention_fraction;  ///< kernel generation ("flash2", "flash3", "fused") -> share of the 16-bit peak
  double attention_backward_ratio = 0.75;  ///< backward rate / forward rate
  double attention_half_length = 600;      ///< tokens at which the attention rate is half its limit
  double low_precision_share = 0.85;       ///< share of the extra fp8 peak that is realised
  double fp4_share = 0.53;
  double grouped_gemm_fraction = 0.94;     ///< of gemm_fraction, expert products
  double misaligned_penalty = 0.45;        ///< extra time when a width is no multiple of `alignment`
  std::int64_t alignment = 64;             ///< elements
  std::int64_t tile_m = 128, tile_n = 256; ///< output tile of the matrix unit's main kernel
  std::int64_t cores = 108;                ///< units that work on one tile each
  double overlap_slowdown = 0.27;          ///< seconds compute loses per second of communication hidden behind it
  friend bool operator==(const ComputeModel&, const ComputeModel&) = default;
};

struct HostLink {
  BytesPerSecond h2d{}, d2h{};
  double copy_cost_s_per_byte = 0.0;  ///< what a step loses per byte moved although it is hidden
  friend bool operator==(const HostLink&, const HostLink&) = default;
};

/// Memory facts around the tensors.
struct DeviceMemory {
  Bytes nominal{};          ///< on the box
  Bytes usable{};           ///< what the processes of a run can take in all
  bool usable_is_allocatable = false;  ///< true: context is already off
  Bytes runtime_context{};  ///< taken by driver and runtime before the first tensor
  Bytes per_communicator{}; ///< buffers of the collective library per communicator
  Bytes product_workspace{32.0 * 1024 * 1024};  ///< scratch memory the matrix-product library asks for per stream
  std::optional<Bytes> usual_budget;  ///< what trainers set on this device
  BytesPerSecond bandwidth{};
  friend bool operator==(const DeviceMemory&, const DeviceMemory&) = default;
};

/// One accelerator type: immutable after loading.
struct DeviceType {
  std::string name, title, vendor;
  std::vector<std::string> aliases;
  std::array<FlopsPerSecond, kDtypeCount> peak{};  ///< by Dtype; 0 = unsupported
  DeviceMemory memory;
  ComputeModel compute;
  std::vector<TopologyLevel> levels;  ///< innermost first, last one unbounded
  std::int64_t node_devices = 8;      ///< devices that share a host
  std::optional<HostLink> host_link;
  std::optional<double> price_per_hour;  ///< currency of the file's note
  std::optional<double> power_watts;     ///< drawn at most by one device (board power)
  std::map<std::string, FigureSource> sources;  ///< by field path of the file
  friend bool operator==(const DeviceType&, const DeviceType&) = default;
};

/// `devices` accelerators of one type.
struct Cluster {
  DeviceType device;
  std::int64_t devices = 1;
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

[[nodiscard]] const char* to_text(Dtype dtype);
[[nodiscard]] const char* to_text(CollectiveKind kind);
[[nodiscard]] const char* to_text(FigureKind kind);

}  // namespace nd
