// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "nd/schedule.hpp"

namespace nd::layout::interleaved {

// Groups of at least p micro-batches keep the loop full: a micro-batch is back at stage 0 after p chunk times. Megatron-LM makes
// groups of the stated size and a smaller last one, which it refuses below p. A rest below p (mb not a multiple of p) is spread
// over as many groups as fit, larger ones first, because the warm-up of all stages is cut for the first.
class Groups {
 public:
  explicit Groups(const ScheduleShape& shape) {
    const int wanted = shape.group > 0 ? shape.group : shape.stages, rest = shape.micro_batches % wanted;
    count_ = std::max(1, shape.micro_batches / wanted);
    if (rest == 0 || rest >= shape.stages) {
      larger_ = count_;
      size_ = wanted;
      last_ = rest;
    } else {
      larger_ = shape.micro_batches % count_;
      last_ = shape.micro_batches / count_;
      size_ = last_ + 1;
    }
  }
  [[nodiscard]] int size(int group) const { return group < larger_ ? size_ : last_; }

 private:
  int count_ = 1, larger_ = 1, size_ = 1, last_ = 0;
};

/// Forwards that the last stage runs ahead; each stage before it runs two more.
inline int last_stage_ahead(const ScheduleShape& shape) { return (shape.chunks - 1) * Groups(shape).size(0); }

/// A stretch of the walk through one chunk: passes begin .. end - 1 of a stage.
struct Run {
  std::ptrdiff_t begin = 0, end = 0, chunk = 0;
  [[nodiscard]] std::ptrdiff_t size() const { return end - begin; }
};

/// The order of a stage's forwards, run by run.
class Runs {
 public:
  explicit Runs(const ScheduleShape& shape) : groups_(shape), chunks_(shape.chunks) { now_.end = groups_.size(0); }

  [[nodiscard]] const Run& now() const { return now_; }
  [[nodiscard]] const Run& before() const { return before_; }
  void advance_to(std::ptrdiff_t pass) {
    while (pass >= now_.end) next();
  }

 private:
  void next() {
    before_ = now_;
    if (++now_.chunk == chunks_) {
      now_.chunk = 0;
      ++group_;
    }
    now_.begin = now_.end;
    now_.end += groups_.size(group_);
  }

  Groups groups_;
  std::ptrdiff_t chunks_;
  int group_ = 0;
  Run now_, before_;
};

}  // namespace nd::layout::interleaved
