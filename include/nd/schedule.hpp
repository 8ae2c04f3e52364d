// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nd/parallel_config.hpp"
#include "nd/units.hpp"

namespace nd {

/// A unit of work of a stage. A backward is either one pass or two: the gradient of the input, which the previous stage
/// waits for, and the gradient of the weights, which nobody waits for.
enum class PassKind : std::uint8_t { forward, backward, backward_input, backward_weight };

/// One entry of a stage's list. `unit` = micro_batch * parts + part (parts = 1 unless sequences are split).
struct Pass {
  std::int32_t unit = 0;
  std::int16_t chunk = 0;  ///< model chunk of this stage
  PassKind kind = PassKind::forward;
  bool joined =
      false;  ///< runs as one block with the next pass of the list (DualPipe's overlapped forward and backward)

  friend bool operator==(const Pass&, const Pass&) = default;
};

/// What the pass lists of a schedule depend on.
struct ScheduleShape {
  int stages = 1;         ///< p
  int chunks = 1;         ///< v, model chunks per stage
  int micro_batches = 1;  ///< m
  int parts = 1;          ///< parts a sequence is split into (Seq1F1B)
  int group = 0;  ///< micro-batches per group of the interleaved schedule (Megatron-LM: micro-batch group size); 0 = p

  [[nodiscard]] int units() const { return micro_batches * parts; }
  friend bool operator==(const ScheduleShape&, const ScheduleShape&) = default;
};
[[nodiscard]] ScheduleShape schedule_shape(const ParallelConfig& config);

/// Seconds of one chunk of one stage for one whole micro-batch. A backward lasts recompute + backward_input +
/// backward_weight.
struct PassTimes {
  Seconds forward, backward_input, backward_weight;
  Seconds recompute;      ///< forward work made again at the start of the backward (of its input half when it is split)
  Seconds joined_saving;  ///< what a forward of this chunk saves by running joined with a backward: F + B - F&B

  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// Chunks of one micro-batch alive at once, a part of a sequence counting 1 / parts.
struct HeldPeak {
  double activations = 0;  ///< from the start of the forward to the end of the backward, or of its input half
  double deferred = 0;     ///< kept for a weight gradient only: end of the input half to end of the weight half
  double together = 0;     ///< largest sum of both; the two peaks need not fall together

  friend bool operator==(const HeldPeak&, const HeldPeak&) = default;
};

/// A stretch of a stage's time and how much of it the stage waits.
struct PhaseTime {
  Seconds length, idle;
};

/// What one stage does during the step. busy + p2p + bubble = makespan = sum of the three phases.
struct StageReplay {
  Seconds busy;         ///< passes, recompute included
  Seconds recompute;    ///< of `busy`
  Seconds p2p;          ///< blocked in a receive (exposed point-to-point only)
  Seconds bubble;       ///< the rest
  PhaseTime warm_up;    ///< to the start of the first backward
  PhaseTime steady;     ///< to the end of the last forward (nothing when that is earlier)
  PhaseTime cool_down;  ///< to the end of the step
  HeldPeak held;
};

struct TimedPass {
  int stage = 0;
  Pass pass;
  Seconds start, end;
  Seconds recompute;  ///< leading share of the interval spent on recompute
};

/// A transfer between two stages; `pass` is the receiver's.
struct TimedMessage {
  int from = 0, to = 0;
  Pass pass;
  Seconds start, end;
};

/// What to replay. Times are stage-major: times[stage * schedule_chunks(...) + chunk].
struct ReplayInput {
  ScheduleShape shape;
  std::span<const PassTimes> times = {};
  /// hop[s]: seconds from stage s to stage (s + 1) mod p and back. Empty = free; one entry = the same everywhere.
  std::span<const Seconds> hop = {};
  bool p2p_exposed = false;                 ///< a receive blocks its stage; else it only delays what depends on it
  std::span<const double> part_share = {};  ///< share of a micro-batch's work in each part, sums to 1; empty = even
  bool timeline = false;                    ///< record passes and messages (allocates)
};

enum class ReplayStatus : std::uint8_t { done, invalid_shape, invalid_input, invalid_order, deadlock };

struct ReplayResult {
  ReplayStatus status = ReplayStatus::done;
  std::string problem;  ///< what is wrong when status != done
  ScheduleShape shape;
  Seconds makespan;
  std::vector<StageReplay> stages;
  std::vector<TimedPass> timeline;     ///< stage by stage, in order of start; only on request
  std::vector<TimedMessage> messages;  ///< only on request

  [[nodiscard]] bool ok() const { return status == ReplayStatus::done; }
  /// Idle share of the step, mean over the stages: sum of bubbles / (stages * makespan).
  [[nodiscard]] double bubble_fraction() const;
};

/// Short name as in configuration files ("1f1b") and title for people ("ZB-H1 (zero bubble)").
[[nodiscard]] std::string_view schedule_title(Schedule schedule);
/// By name or alias of the schedule table; case, '-' and '_' do not count ("DualPipeV", "zero_bubble_v").
[[nodiscard]] std::optional<Schedule> find_schedule(std::string_view name);
/// What lists of schedules show.
struct ScheduleInfo {
  Schedule id = Schedule::one_f_one_b;
  std::string_view name, title;
  std::string_view aliases;  ///< separated by spaces
  std::string_view rule;     ///< shapes it can run, in words
  bool splits_backward = false;
};
[[nodiscard]] ScheduleInfo schedule_info(Schedule schedule);
[[nodiscard]] std::vector<Schedule> all_schedules();
/// Why the schedule cannot run with this shape; nullopt when it can.
[[nodiscard]] std::optional<std::string_view> why_invalid(Schedule schedule, const ScheduleShape& shape);
/// Model chunks a stage holds: v, but 2 for DualPipe, whose stages hold a chunk of either direction.
[[nodiscard]] int schedule_chunks(Schedule schedule, const ScheduleShape& shape);
/// Place of a stage's chunk in the model, 0 = holds the first layers.
[[nodiscard]] int chunk_position(Schedule schedule, const ScheduleShape& shape, int stage, int chunk);
/// Ordered passes of one stage; empty when the shape is invalid.
[[nodiscard]] std::vector<Pass> stage_passes(Schedule schedule, const ScheduleShape& shape, int stage);
/// Replays the whole step. For many replays use layout/replay.hpp, which keeps its memory.
[[nodiscard]] ReplayResult replay_schedule(Schedule schedule, const ReplayInput& input);

/// "F3.1": kind (F, B; Bi and W when split), micro-batch and chunk counted from 1 (the chunk left out when there is
/// one); a part of a sequence follows after a slash ("F3/2").
[[nodiscard]] std::string pass_name(const Pass& pass, const ScheduleShape& shape);
/// Trace for chrome://tracing and ui.perfetto.dev (Trace Event Format, microseconds); needs a replay with `timeline`.
/// One track per stage for passes, below it what the stage receives.
[[nodiscard]] std::string trace_json(const ReplayResult& replay, std::string_view title);
/// Timeline as a self-contained SVG; needs a replay with `timeline`.
[[nodiscard]] std::string timeline_svg(const ReplayResult& replay, std::string_view title);

}  // namespace nd
