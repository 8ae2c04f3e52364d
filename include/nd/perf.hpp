// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "nd/scenario.hpp"
#include "nd/schedule.hpp"
#include "nd/units.hpp"

namespace nd {

/// Parts of a step, in the order of every report.
enum class TimePart {
  fw_compute, bw_compute, recompute, tp_comm, cp_comm, ep_comm, dp_comm, dp_reduce, pp_comm, bubble, optimizer, other
};
inline constexpr std::size_t kTimePartCount = 12;
/// "FW_COMPUTE", ...
[[nodiscard]] std::string_view to_text(TimePart part);

/// Seconds of one step. Exposed parts sum to `step`; hidden ones ran behind something else.
struct TimeBreakdown {
  std::array<Seconds, kTimePartCount> exposed{}, hidden{};
  Seconds step{};
  [[nodiscard]] Seconds part(TimePart which) const { return exposed[static_cast<std::size_t>(which)]; }
  /// The part with the largest exposed time.
  [[nodiscard]] TimePart bound_by() const;
};

/// The passes of a strategy's pipeline with their seconds: what a replay, a trace or a timeline shows. Owns what ReplayInput views.
struct PipelinePasses {
  Schedule schedule = Schedule::one_f_one_b;
  ScheduleShape shape;
  std::vector<PassTimes> times;  ///< [stage * schedule_chunks + chunk]
  std::vector<Seconds> hop;      ///< one way between neighbouring stages, the same everywhere; empty without a pipeline
  bool p2p_exposed = false;      ///< the trainer's receives block the stage
  bool balanced = false;         ///< the trainer moves layers until stages cost alike: every stage has the same times
  Seconds pipeline;              ///< what estimate_time counts for the passes and their bubble: no messages, no optimizer
  /// For replay_schedule; valid as long as this object.
  [[nodiscard]] ReplayInput input() const { return {.shape = shape, .times = times, .hop = hop, .p2p_exposed = p2p_exposed}; }
};
/// The passes that estimate_time prices. Precondition: the strategy is legal for the scenario. Pure; thread-safe.
[[nodiscard]] PipelinePasses pipeline_passes(const Scenario& scenario, const ParallelConfig& config);

/// Seconds per training step. Precondition: the strategy is legal for the scenario. Pure; thread-safe.
[[nodiscard]] TimeBreakdown estimate_time(const Scenario& scenario, const ParallelConfig& config);

}  // namespace nd
