// SPDX-License-Identifier: Apache-2.0
#include "layout/schedules/pass_lists.hpp"

#include <algorithm>

namespace nd::layout {

namespace {

enum Progress : unsigned char { untouched, forward_done, input_done, finished };

std::string where(int stage, const Pass& pass, const ScheduleShape& shape) {
  return pass_name(pass, shape) + " on stage " + std::to_string(stage);
}

}  // namespace

int PassLists::position(int stage, int chunk) const { return row_->position(shape_, stage, chunk); }

std::span<const Pass> PassLists::stage(int stage) const {
  const auto n = static_cast<std::size_t>(stage);
  return std::span(passes_).subspan(first_[n], first_[n + 1] - first_[n]);
}

ReplayStatus PassLists::fail(ReplayStatus status, std::string problem) {
  problem_ = std::move(problem);
  return status_ = status;
}

ReplayStatus PassLists::build(const ScheduleRow& row, const ScheduleShape& shape) {
  if (row_ == &row && shape_ == shape) return status_;
  row_ = &row;
  shape_ = shape;
  passes_.clear();
  first_.clear();
  held_.clear();
  problem_.clear();
  covered_ = 0;
  if (const auto reason = why_invalid(row, shape)) return fail(ReplayStatus::invalid_shape, std::string(*reason));
  local_chunks_ = row.local_chunks(shape);
  positions_ = row.positions(shape);
  status_ = ReplayStatus::done;
  for (int stage = 0; stage < shape.stages; ++stage) {
    first_.push_back(passes_.size());
    row.passes(shape, stage, passes_);
  }
  first_.push_back(passes_.size());
  for (int stage = 0; stage < shape.stages; ++stage)
    if (check_stage(stage) != ReplayStatus::done) return status_;
  if (covered_ != static_cast<std::size_t>(positions_) * static_cast<std::size_t>(shape.units()))
    return fail(ReplayStatus::invalid_order, "some micro-batch does not run through the whole model");
  return status_;
}

ReplayStatus PassLists::check_stage(int stage) {
  const int units = shape_.units();
  progress_.assign(static_cast<std::size_t>(local_chunks_) * static_cast<std::size_t>(units), untouched);
  std::size_t open = 0;
  for (const Pass& pass : this->stage(stage)) {
    if (pass.chunk < 0 || pass.chunk >= local_chunks_ || pass.unit < 0 || pass.unit >= units)
      return fail(ReplayStatus::invalid_order,
                  "a pass of stage " + std::to_string(stage) + " names no micro-batch or chunk");
    auto& state = progress_[static_cast<std::size_t>(pass.chunk) * static_cast<std::size_t>(units) +
                            static_cast<std::size_t>(pass.unit)];
    unsigned char needs = untouched, leaves = forward_done;
    switch (pass.kind) {
      case PassKind::forward:
        ++open;
        break;
      case PassKind::backward:
        needs = forward_done;
        leaves = finished;
        break;
      case PassKind::backward_input:
        needs = forward_done;
        leaves = input_done;
        break;
      case PassKind::backward_weight:
        needs = input_done;
        leaves = finished;
        break;
    }
    if (state != needs)
      return fail(ReplayStatus::invalid_order, where(stage, pass, shape_) + " is out of order or doubled");
    state = leaves;
    if (leaves == finished) {
      --open;
      ++covered_;
    }
  }
  if (open != 0) return fail(ReplayStatus::invalid_order, "a backward is missing on stage " + std::to_string(stage));
  held_.push_back(count_held(this->stage(stage), shape_.parts));
  return ReplayStatus::done;
}

HeldPeak count_held(std::span<const Pass> passes, int parts) {
  int activations = 0, deferred = 0, most_activations = 0, most_deferred = 0, most_together = 0;
  for (const Pass& pass : passes) {
    activations += pass.kind == PassKind::forward ? 1 : pass.kind == PassKind::backward_weight ? 0 : -1;
    deferred += pass.kind == PassKind::backward_input ? 1 : pass.kind == PassKind::backward_weight ? -1 : 0;
    most_activations = std::max(most_activations, activations);
    most_deferred = std::max(most_deferred, deferred);
    most_together = std::max(most_together, activations + deferred);
  }
  const double n = parts;
  return {most_activations / n, most_deferred / n, most_together / n};
}

double largest_held(std::span<const Pass> passes, int parts, std::span<const ChunkBytes> bytes,
                    std::span<ChunkHeld> held) {
  // Two walks: the first finds the instant, the second stops at it. Only a forward or the start of a deferral adds
  // bytes.
  const auto step = [&](const Pass& pass) {
    ChunkHeld& now = held[static_cast<std::size_t>(pass.chunk)];
    switch (pass.kind) {
      case PassKind::forward:
        now.activations += 1;
        break;
      case PassKind::backward:
        now.activations -= 1;
        break;
      case PassKind::backward_input:
        now.activations -= 1;
        now.deferred += 1;
        break;
      case PassKind::backward_weight:
        now.deferred -= 1;
        break;
    }
  };
  const auto total = [&] {
    double sum = 0;
    for (std::size_t c = 0; c < bytes.size(); ++c)
      sum += held[c].activations * bytes[c].activations + held[c].deferred * bytes[c].deferred;
    return sum / parts;
  };
  std::fill(held.begin(), held.end(), ChunkHeld{});
  double most = 0;
  std::size_t instant = 0;
  for (std::size_t n = 0; n < passes.size(); ++n) {
    step(passes[n]);
    if (const double now = total(); now > most * (1 + 1e-12)) {
      most = now;
      instant = n + 1;
    }
  }
  std::fill(held.begin(), held.end(), ChunkHeld{});
  for (std::size_t n = 0; n < instant; ++n) step(passes[n]);
  for (ChunkHeld& chunk : held) {
    chunk.activations /= parts;
    chunk.deferred /= parts;
  }
  return most;
}

}  // namespace nd::layout
