// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace nd {

/// What is dropped in the forward pass and made again in the backward pass.
/// per_layer: every layer has one of the others, as nd/plan.hpp chooses. Append-only.
enum class Recompute : std::uint8_t { off, selective, full, per_layer };
inline constexpr std::size_t kLayerModes = 3;  ///< what one layer can do: all but per_layer
/// What the data-parallel group shards: nothing, optimizer states, + gradients, + parameters.
enum class ZeroLevel : std::uint8_t { none, optimizer, gradients, parameters };
/// Pipeline schedule; libnd/layout/schedules/table.cpp has a row for each. Append-only.
enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1, zb_v, dualpipe, dualpipe_v, seq_1f1b };
enum class CpAlgorithm : std::uint8_t { ring, all_gather, ulysses };

/// One strategy. devices = dp * tp * pp * cp; ep is taken out of dp * cp * tp (Megatron: dp * cp * tp = ep * etp * expert-dp).
/// Defaulted comparison is the last tie-break of the ranking.
struct ParallelConfig {
  int dp = 1, tp = 1, pp = 1, cp = 1;
  int ep = 1;   ///< ranks the experts are spread over
  int etp = 1;  ///< tensor parallel degree inside an expert
  int vpp = 1;  ///< model chunks per stage
  int op = 1;   ///< ranks the optimizer states (and what `zero` adds) are sharded over; divides dp * cp
  int micro_batch_size = 1;  ///< sequences
  int micro_batch_num = 1;   ///< per data-parallel rank and step
  bool sequence_parallel = false;
  ZeroLevel zero = ZeroLevel::none;
  Schedule schedule = Schedule::one_f_one_b;
  Recompute recompute = Recompute::off;
  CpAlgorithm cp_algorithm = CpAlgorithm::ring;
  int micro_batch_group = 0;  ///< micro-batches per group of the interleaved schedule; 0 = pp, and without meaning elsewhere
  int seq_split = 1;  ///< parts a sequence is cut into along the pipeline (seq_1f1b)

  /// Micro-batches per group of the interleaved schedule.
  [[nodiscard]] int group_size() const { return micro_batch_group > 0 ? micro_batch_group : pp; }
  [[nodiscard]] std::int64_t devices() const { return std::int64_t{dp} * tp * pp * cp; }
  [[nodiscard]] std::int64_t global_batch() const { return std::int64_t{dp} * micro_batch_size * micro_batch_num; }
  /// Data-parallel replicas of an expert's weights: devices / (pp * ep * etp).
  [[nodiscard]] std::int64_t expert_dp() const { return std::int64_t{dp} * tp * cp / (std::int64_t{ep} * etp); }

  friend auto operator<=>(const ParallelConfig&, const ParallelConfig&) = default;
};

[[nodiscard]] const char* to_text(Recompute mode);
[[nodiscard]] const char* to_text(Schedule schedule);
[[nodiscard]] const char* to_text(CpAlgorithm algorithm);
/// "dp8 tp4 pp2 ..." with the degrees of 1 left out.
[[nodiscard]] std::string to_text(const ParallelConfig& config);

}  // namespace nd
