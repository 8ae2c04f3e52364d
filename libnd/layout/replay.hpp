// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/schedules/pass_lists.hpp"
#include "nd/schedule.hpp"

namespace nd::layout {

/// Runs the pass lists of a schedule over given durations: a pass starts when its stage is free and what it waits for
/// is there. Keeps its memory: after a first replay of a shape, further ones of that shape (or smaller) allocate
/// nothing unless a timeline is asked for. Not thread-safe; one per worker. docs/cost_model_pipeline.md#replay.
class Replay {
 public:
  /// The result lives until the next call. `row` must outlive the object.
  const ReplayResult& run(const ScheduleRow& row, const ReplayInput& input);
  [[nodiscard]] const PassLists& lists() const { return lists_; }

 private:
  static constexpr std::size_t kKinds = 4;
  enum Phase : unsigned char { warm_up, steady, cool_down };

  /// How one kind of pass of one chunk runs.
  struct Action {
    const double* after = nullptr;  ///< per unit: end of what the pass waits for, negative while it has not run
    double* end = nullptr;          ///< per unit: where its own end is written
    double seconds = 0;             ///< for a whole micro-batch
    double transfer = 0;            ///< on the way from the stage waited for
    std::int32_t from = -1;         ///< that stage when it is another one
  };
  struct Cursor {
    const Pass* next = nullptr;
    const Pass* last = nullptr;
    double free = 0, busy = 0, p2p = 0, first_backward = 0, last_forward = 0;
    double idle[3] = {0, 0, 0};
    Phase phase = warm_up;
    int forwards_left = 0;
  };

  struct Interval {
    double start, end, received;
  };

  bool check_input(const ScheduleRow& row, const ReplayInput& input);
  bool set_up(const ScheduleRow& row, const ReplayInput& input);
  bool set_up_chunk(const ScheduleRow& row, const ReplayInput& input, int stage, int chunk);
  bool advance(Cursor& cursor, int stage, bool parts);
  template <bool kParts>
  bool run_single(Cursor& cursor, int stage);
  bool run_joined(Cursor& cursor, int stage);
  static void enter(Cursor& cursor, PassKind kind, double start, double end);
  void record(int stage, const Pass& pass, const Interval& at);
  void summarise(const ReplayInput& input);
  const ReplayResult& fail(ReplayStatus status, std::string problem);
  [[nodiscard]] std::size_t slot(int stage, int chunk) const {
    return static_cast<std::size_t>(stage * lists_.local_chunks() + chunk);
  }
  [[nodiscard]] const Action& action_of(int stage, const Pass& pass) const {
    return actions_[slot(stage, pass.chunk) * kKinds + static_cast<std::size_t>(pass.kind)];
  }

  PassLists lists_;
  ReplayResult result_;
  std::vector<Action> actions_;  ///< [stage][chunk][kind]
  std::vector<double>
      ends_;  ///< forwards, input gradients (rows of units per place of the model), then two helper rows
  std::vector<double> share_;   ///< work of a unit as a share of its micro-batch
  std::vector<double> saving_;  ///< [stage][chunk] of a forward that runs joined
  std::vector<double> recompute_;
  std::vector<int> holder_;  ///< stage per place and direction
  std::vector<Cursor> cursors_;
  bool exposed_ = false, timeline_ = false;
};

}  // namespace nd::layout
