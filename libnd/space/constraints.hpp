// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "nd/search_space.hpp"
#include "space/context.hpp"

// One function per dimension. Each may read its own dimension and those enumerated before it (order of nd::Dimension);
// together they are the definition of a legal strategy.
namespace nd::space {

using Verdict = std::optional<Rejection>;

/// tp divides query heads and feed-forward widths; it divides the KV heads or, where the framework replicates them, is a multiple.
[[nodiscard]] Verdict check_tp(const SpaceContext& context, const ParallelConfig& config);
/// No more stages than layers.
[[nodiscard]] Verdict check_pp(const SpaceContext& context, const ParallelConfig& config);
/// Ring and all-gather give each rank two chunks of the sequence (zig-zag): 2 cp divides it. Ulysses splits heads: tp * cp divides them.
[[nodiscard]] Verdict check_cp(const SpaceContext& context, const ParallelConfig& config);
/// dp * tp * pp * cp = devices, and dp divides the global batch.
[[nodiscard]] Verdict check_dp(const SpaceContext& context, const ParallelConfig& config);
/// ep divides the experts of every layer kind and the ranks of a stage.
[[nodiscard]] Verdict check_ep(const SpaceContext& context, const ParallelConfig& config);
/// ep * etp divides the ranks of a stage (dp * cp * tp); etp divides the expert width.
[[nodiscard]] Verdict check_etp(const SpaceContext& context, const ParallelConfig& config);
/// Needs tp > 1; tp * cp divides the sequence; some trainers demand it for MoE layers with tp > 1.
[[nodiscard]] Verdict check_sequence_parallel(const SpaceContext& context, const ParallelConfig& config);
[[nodiscard]] Verdict check_micro_batch_size(const SpaceContext& context, const ParallelConfig& config);
/// dp * mbs * mb = global batch; MindSpore pipelines need mb >= pp.
[[nodiscard]] Verdict check_micro_batch_num(const SpaceContext& context, const ParallelConfig& config);
/// Chunks need a pipeline and a layer each.
[[nodiscard]] Verdict check_vpp(const SpaceContext& context, const ParallelConfig& config);
/// Offered by the framework, and what the row of the schedule table demands of pp, vpp and mb; interleaved: mb a multiple of pp
/// unless the framework takes any.
[[nodiscard]] Verdict check_schedule(const SpaceContext& context, const ParallelConfig& config);
/// What check_schedule finds wrong, in words; empty when nothing is.
[[nodiscard]] std::string schedule_problem(const SpaceContext& context, const ParallelConfig& config);
/// Level offered by the framework; gradients or parameters are sharded together with a pipeline by FSDP2 and MindSpore only.
[[nodiscard]] Verdict check_zero(const SpaceContext& context, const ParallelConfig& config);
/// op divides dp * cp; it is above 1 exactly when something is sharded.
[[nodiscard]] Verdict check_optimizer_shard(const SpaceContext& context, const ParallelConfig& config);
[[nodiscard]] Verdict check_recompute(const SpaceContext& context, const ParallelConfig& config);

/// The layers divide over pp * vpp chunks as the framework demands, or the run states a layout for exactly these degrees.
[[nodiscard]] Verdict check_layers(const SpaceContext& context, std::int64_t pp, std::int64_t vpp);

}  // namespace nd::space
