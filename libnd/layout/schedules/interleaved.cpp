// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (Narayanan et al. 2021b, section 2.2.2; Megatron-LM's schedule table): micro-batches go in groups,
// each group through chunk 0, then chunk 1, ...; 2(p - i - 1) + (v - 1) * group passes ahead, then one forward, one
// backward.
#include <algorithm>

#include "layout/schedules/emit.hpp"
#include "layout/schedules/interleaved_runs.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout::interleaved {

namespace {

/// Walks the forwards of any stage in order; the backwards are the same walk with the chunks reversed.
class Walk {
 public:
  Walk(const ScheduleShape& shape, const Groups& groups) : groups_(groups), chunks_(shape.chunks) {}

  [[nodiscard]] int chunk() const { return chunk_; }
  [[nodiscard]] int unit() const { return first_ + offset_; }
  void next() {
    if (++offset_ < groups_.size(group_)) return;
    offset_ = 0;
    if (++chunk_ < chunks_) return;
    chunk_ = 0;
    first_ += groups_.size(group_++);
  }

 private:
  Groups groups_;
  int chunks_, group_ = 0, first_ = 0, chunk_ = 0, offset_ = 0;
};

int passes_ahead(const ScheduleShape& shape, int stage) {
  return std::min(2 * (shape.stages - stage - 1) + last_stage_ahead(shape), shape.micro_batches * shape.chunks);
}

}  // namespace

std::optional<std::string_view> why_invalid(const ScheduleShape& shape) {
  if (shape.stages < 2) return "interleaved needs a pipeline (pp >= 2)";
  if (shape.chunks < 2) return "interleaved needs at least 2 model chunks per stage (vpp >= 2)";
  if (shape.micro_batches < shape.stages) return "interleaved needs at least as many micro-batches as stages";
  if (shape.group != 0 && (shape.group < shape.stages || shape.group > shape.micro_batches))
    return "the micro-batch group size must lie between the number of stages and of micro-batches";
  return std::nullopt;
}

void passes(const ScheduleShape& shape, int stage, PassList& out) {
  const Groups groups(shape);
  const int total = shape.micro_batches * shape.chunks, ahead = passes_ahead(shape, stage);
  Walk forward(shape, groups), backward(shape, groups);
  for (int n = 0; n < total + ahead; ++n) {
    if (n < total) {
      emit(out, PassKind::forward, forward.chunk(), forward.unit());
      forward.next();
    }
    if (n >= ahead) {
      emit(out, PassKind::backward, shape.chunks - 1 - backward.chunk(), backward.unit());
      backward.next();
    }
  }
}

HeldPeak held(const ScheduleShape& shape, int stage) {
  const double kept = std::min(passes_ahead(shape, stage) + 1, shape.micro_batches * shape.chunks);
  return {kept, 0, kept};
}

std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  return (shape.stages - 1) * (times.forward + times.backward());
}

}  // namespace nd::layout::interleaved
