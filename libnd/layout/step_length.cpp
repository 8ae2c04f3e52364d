// SPDX-License-Identifier: Apache-2.0
#include "layout/step_length.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "layout/hops.hpp"
#include "nd/result.hpp"

namespace nd::layout {

namespace {

std::size_t index(int n) { return static_cast<std::size_t>(n); }

bool even_parts(const ReplayInput& input) { return input.part_share.empty() || input.shape.parts == 1; }

double smallest_share(const ReplayInput& input) {
  return even_parts(input) ? 1.0 / input.shape.parts : *std::min_element(input.part_share.begin(), input.part_share.end());
}

}  // namespace

void StepLength::prepare(const ScheduleRow& row, const ReplayInput& input) {
  const ScheduleShape& shape = input.shape;
  ND_CHECK(!why_invalid(row, shape));
  const int chunks = row.local_chunks(shape), places = row.positions(shape), copies = row.model_copies;
  const std::size_t slots = index(shape.stages) * index(chunks);
  ND_CHECK(input.times.size() == slots);
  const auto copy_of = [&](int chunk) { return copies > 1 ? chunk : 0; };
  holder_.resize(index(places) * index(copies));
  for (int stage = 0; stage < shape.stages; ++stage)
    for (int chunk = 0; chunk < chunks; ++chunk)
      holder_[index(row.position(shape, stage, chunk) * copies + copy_of(chunk))] = stage;

  times_.stages = index(shape.stages);
  times_.waits = false;
  for (auto* values : {&times_.forward, &times_.backward, &times_.weight, &times_.forward_wait, &times_.backward_wait}) values->resize(slots);
  const double share = smallest_share(input);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      const PassTimes& t = input.times[index(stage * chunks + chunk)];
      const std::size_t cell = index(chunk * shape.stages + stage);
      const int place = row.position(shape, stage, chunk);
      const auto transfer_from = [&](int other) {
        return other < 0 || other >= places ? 0.0 : share * hop_seconds(input, holder_[index(other * copies + copy_of(chunk))], stage);
      };
      const double before = transfer_from(place - 1), after = transfer_from(place + 1);
      const double weight = share * t.backward_weight.value;
      times_.forward[cell] = share * t.forward.value + (input.p2p_exposed ? before : 0.0);
      times_.backward[cell] = share * (t.recompute + t.backward_input).value + (row.splits_backward ? 0.0 : weight) + (input.p2p_exposed ? after : 0.0);
      times_.weight[cell] = row.splits_backward ? weight : 0.0;
      times_.forward_wait[cell] = input.p2p_exposed ? 0.0 : before;
      times_.backward_wait[cell] = input.p2p_exposed ? 0.0 : after;
      times_.waits = times_.waits || times_.forward_wait[cell] > 0 || times_.backward_wait[cell] > 0;
    }
  }
}

Seconds StepLength::of(const ScheduleRow& row, const ReplayInput& input) {
  if (row.length != nullptr && even_parts(input)) {
    prepare(row, input);
    if (const auto length = row.length(input.shape, times_, scratch_)) return {*length};
  }
  const ReplayResult& replayed = replay_.run(row, input);
  ND_CHECK(replayed.ok());
  return replayed.makespan;
}

Seconds StepLength::at_least(const ScheduleRow& row, const ReplayInput& input) {
  prepare(row, input);
  const ScheduleShape& shape = input.shape;
  const int chunks = row.local_chunks(shape), places = row.positions(shape), copies = row.model_copies;
  const double share = smallest_share(input), batches = static_cast<double>(shape.micro_batches) / copies;
  const auto cell_of = [&](int stage, int place, int copy) {
    int chunk = copies > 1 ? copy : 0;
    while (row.position(shape, stage, chunk) != place) ++chunk;
    return index(chunk * shape.stages + stage);
  };

  // Of each stage: seconds until its first forward can start, seconds from its last backward to the end of the first stage's,
  // and those after the gradient has come to its last place (one micro-batch).
  constexpr double kFar = std::numeric_limits<double>::infinity();
  reach_.assign(3 * times_.stages, kFar);
  double* const head = reach_.data();
  double* const tail = head + shape.stages;
  double* const first_gradient = tail + shape.stages;
  double whole_chain = 0;
  for (int copy = 0; copy < copies; ++copy) {
    double forward = 0, backward = 0;
    for (int place = 0; place < places; ++place) {
      const int stage = holder_[index(place * copies + copy)];
      const std::size_t cell = cell_of(stage, place, copy);
      head[stage] = std::min(head[stage], forward + times_.forward_wait[cell]);
      tail[stage] = std::min(tail[stage], backward);
      forward += times_.forward_wait[cell] + times_.forward[cell];
      backward += times_.backward_wait[cell] + times_.backward[cell];
      first_gradient[stage] = backward;
    }
    for (int stage = 0; stage < shape.stages; ++stage) first_gradient[stage] = forward + backward - first_gradient[stage];
    whole_chain = std::max(whole_chain, forward + backward);
  }

  double bound = whole_chain;
  for (int stage = 0; stage < shape.stages; ++stage) {
    double work = 0, longest_forward = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t cell = index(chunk * shape.stages + stage);
      const PassTimes& t = input.times[index(stage * chunks + chunk)];
      work += times_.forward[cell] + times_.backward[cell] + times_.weight[cell];
      if (row.joins_passes) {
        // A joined pair saves at most its forward, and its two receives block once.
        const double forward = share * t.forward.value;
        const double receives = times_.forward[cell] + times_.backward[cell] - forward - share * (t.recompute + t.backward_input).value;
        work -= std::min(share * t.joined_saving.value, forward) + receives;
      }
      longest_forward = std::max(longest_forward, times_.forward[cell]);
    }
    work *= batches / share;
    // Weight halves may fill the end of the step, nothing else may.
    const double after = row.splits_backward ? 0.0 : tail[stage];
    bound = std::max(bound, head[stage] + work + after);
    // Before its first gradient a stage runs the forwards it holds then, at most.
    if (row.length != nullptr && copies == 1) {
      const double held = row.held(shape, stage).activations * shape.parts;
      bound = std::max(bound, first_gradient[stage] + work - held * longest_forward + after);
    }
  }
  return {bound};
}

}  // namespace nd::layout
