// SPDX-License-Identifier: Apache-2.0
#include "layout/replay.hpp"

#include <algorithm>
#include <cmath>

#include "layout/hops.hpp"
#include "layout/schedules/table.hpp"

namespace nd::layout {

namespace {

constexpr double kNotYet = -1;

std::size_t index(int n) { return static_cast<std::size_t>(n); }

bool is_amount(Seconds time) { return std::isfinite(time.value) && time.value >= 0; }

bool all_amounts(const PassTimes& t) {
  return is_amount(t.forward) && is_amount(t.backward_input) && is_amount(t.backward_weight) &&
         is_amount(t.recompute) && is_amount(t.joined_saving);
}

}  // namespace

const ReplayResult& Replay::fail(ReplayStatus status, std::string problem) {
  result_.status = status;
  result_.problem = std::move(problem);
  return result_;
}

bool Replay::check_input(const ScheduleRow& row, const ReplayInput& input) {
  const ScheduleShape& shape = input.shape;
  const auto refuse = [this](const char* why) {
    fail(ReplayStatus::invalid_input, why);
    return false;
  };
  if (input.times.size() != index(shape.stages) * index(row.local_chunks(shape)))
    return refuse("one set of times per stage and chunk is needed");
  if (!std::all_of(input.times.begin(), input.times.end(), all_amounts))
    return refuse("a time is negative or not a number");
  if (input.hop.size() > 1 && input.hop.size() != index(shape.stages))
    return refuse("transfer times: none, one, or one per stage");
  if (!std::all_of(input.hop.begin(), input.hop.end(), is_amount))
    return refuse("a transfer time is negative or not a number");
  if (!input.part_share.empty() && input.part_share.size() != index(shape.parts))
    return refuse("one share per part of a sequence is needed");
  return true;
}

bool Replay::set_up_chunk(const ScheduleRow& row, const ReplayInput& input, int stage, int chunk) {
  const ScheduleShape& shape = input.shape;
  const auto units = index(shape.units());
  const int places = lists_.positions(), here = lists_.position(stage, chunk), copies = row.model_copies;
  double* const forwards = ends_.data();
  double* const gradients = forwards + index(places) * units;
  double* const zero = gradients + index(places) * units;
  double* const unread = zero + units;
  const auto holder = [&](int place) { return holder_[index(place * copies + (copies > 1 ? chunk : 0))]; };
  bool neighbours = true;
  const auto receive_from = [&](Action& action, int other) {
    if (other == stage) return;
    action.from = other;
    neighbours = neighbours && ring_neighbours(shape, other, stage);
    action.transfer = hop_seconds(input, other, stage);
  };

  const std::size_t here_slot = slot(stage, chunk);
  const PassTimes& t = input.times[here_slot];
  Action* const actions = actions_.data() + here_slot * kKinds;
  Action forward{zero, forwards + index(here) * units, t.forward.value};
  if (here > 0) {
    forward.after = forwards + index(here - 1) * units;
    receive_from(forward, holder(here - 1));
  }
  Action backward{forward.end, gradients + index(here) * units, t.recompute.value + t.backward_input.value};
  if (here + 1 < places) {
    backward.after = gradients + index(here + 1) * units;
    receive_from(backward, holder(here + 1));
  }
  actions[index(static_cast<int>(PassKind::forward))] = forward;
  actions[index(static_cast<int>(PassKind::backward_input))] = backward;
  actions[index(static_cast<int>(PassKind::backward_weight))] = Action{backward.end, unread, t.backward_weight.value};
  backward.seconds += t.backward_weight.value;
  actions[index(static_cast<int>(PassKind::backward))] = backward;
  saving_[here_slot] = t.joined_saving.value;
  recompute_[here_slot] = t.recompute.value;
  return neighbours;
}

bool Replay::set_up(const ScheduleRow& row, const ReplayInput& input) {
  const ScheduleShape& shape = input.shape;
  const auto units = index(shape.units()), rows = 2 * index(lists_.positions());
  const auto slots = index(shape.stages) * index(lists_.local_chunks());
  ends_.assign(rows * units, kNotYet);
  ends_.resize((rows + 2) * units, 0.0);
  share_.resize(units);
  for (std::size_t unit = 0; unit < units; ++unit)
    share_[unit] = input.part_share.empty() ? 1.0 / shape.parts : input.part_share[unit % index(shape.parts)];
  actions_.resize(slots * kKinds);
  saving_.resize(slots);
  recompute_.resize(slots);
  holder_.resize(index(lists_.positions() * row.model_copies));
  for (int stage = 0; stage < shape.stages; ++stage)
    for (int chunk = 0; chunk < lists_.local_chunks(); ++chunk)
      holder_[index(lists_.position(stage, chunk) * row.model_copies + (row.model_copies > 1 ? chunk : 0))] = stage;
  bool neighbours = true;
  for (int stage = 0; stage < shape.stages; ++stage)
    for (int chunk = 0; chunk < lists_.local_chunks(); ++chunk)
      neighbours = set_up_chunk(row, input, stage, chunk) && neighbours;

  cursors_.assign(index(shape.stages), Cursor{});
  for (int stage = 0; stage < shape.stages; ++stage) {
    const auto passes = lists_.stage(stage);
    Cursor& cursor = cursors_[index(stage)];
    cursor.next = passes.data();
    cursor.last = passes.data() + passes.size();
    cursor.forwards_left = row.model_copies > 1 ? shape.units() : shape.units() * lists_.local_chunks();
  }
  exposed_ = input.p2p_exposed;
  timeline_ = input.timeline;
  return neighbours;
}

void Replay::enter(Cursor& cursor, PassKind kind, double start, double end) {
  if (kind == PassKind::forward) {
    cursor.last_forward = end;
    if (--cursor.forwards_left == 0 && cursor.phase == steady) cursor.phase = cool_down;
  } else if (cursor.phase == warm_up) {
    cursor.first_backward = start;
    cursor.phase = cursor.forwards_left > 0 ? steady : cool_down;
  }
}

template <bool kParts>
bool Replay::run_single(Cursor& cursor, int stage) {
  const Pass& pass = *cursor.next;
  const Action& action = action_of(stage, pass);
  const auto unit = static_cast<std::size_t>(pass.unit);
  const double ready = action.after[unit];
  if (ready < 0) return false;
  const double share = kParts ? share_[unit] : 1.0, seconds = action.seconds * share,
               transfer = action.transfer * share;
  const double blocked = exposed_ ? transfer : 0.0;
  const double waited = std::max(cursor.free, exposed_ ? ready : ready + transfer);
  const double start = waited + blocked, end = start + seconds;
  action.end[unit] = end;
  cursor.idle[cursor.phase] += waited - cursor.free;
  cursor.p2p += blocked;
  cursor.busy += seconds;
  cursor.free = end;
  ++cursor.next;
  enter(cursor, pass.kind, start, end);
  if (timeline_) record(stage, pass, {start, end, exposed_ ? start : ready + transfer});
  return true;
}

// Two passes as one block: both inputs are awaited, both outputs are there at its end. Opposite transfers run side by
// side.
bool Replay::run_joined(Cursor& cursor, int stage) {
  const Pass &first = cursor.next[0], &second = cursor.next[1];
  const Action &a = action_of(stage, first), &b = action_of(stage, second);
  const auto unit_a = static_cast<std::size_t>(first.unit), unit_b = static_cast<std::size_t>(second.unit);
  const double ready_a = a.after[unit_a], ready_b = b.after[unit_b];
  if (ready_a < 0 || ready_b < 0) return false;
  const double seconds_a = a.seconds * share_[unit_a], seconds_b = b.seconds * share_[unit_b];
  const double transfer_a = a.transfer * share_[unit_a], transfer_b = b.transfer * share_[unit_b];
  const double saved = saving_[slot(stage, first.chunk)] * share_[unit_a];
  const double block = std::max({seconds_a + seconds_b - saved, seconds_a, seconds_b});
  const double blocked = exposed_ ? std::max(transfer_a, transfer_b) : 0.0;
  const double arrived_a = exposed_ ? ready_a : ready_a + transfer_a,
               arrived_b = exposed_ ? ready_b : ready_b + transfer_b;
  const double waited = std::max({cursor.free, arrived_a, arrived_b});
  const double start = waited + blocked, end = start + block;
  a.end[unit_a] = end;
  b.end[unit_b] = end;
  cursor.idle[cursor.phase] += waited - cursor.free;
  cursor.p2p += blocked;
  cursor.busy += block;
  cursor.free = end;
  cursor.next += 2;
  enter(cursor, first.kind, start, end);
  enter(cursor, second.kind, start, end);
  if (timeline_) {
    // Shown one after the other, each with its share of the block.
    const double both = seconds_a + seconds_b, seam = both > 0 ? start + block * seconds_a / both : start;
    record(stage, first, {start, seam, exposed_ ? start : arrived_a});
    record(stage, second, {seam, end, exposed_ ? start : arrived_b});
  }
  return true;
}

bool Replay::advance(Cursor& cursor, int stage, bool parts) {
  const Pass* const begin = cursor.next;
  bool ran = true;
  while (ran && cursor.next != cursor.last) {
    if (cursor.next->joined)
      ran = run_joined(cursor, stage);
    else
      ran = parts ? run_single<true>(cursor, stage) : run_single<false>(cursor, stage);
  }
  return cursor.next != begin;
}

void Replay::record(int stage, const Pass& pass, const Interval& at) {
  const Action& action = action_of(stage, pass);
  const double share = share_[static_cast<std::size_t>(pass.unit)];
  const bool again = pass.kind == PassKind::backward || pass.kind == PassKind::backward_input;
  const double recompute = again ? std::min(recompute_[slot(stage, pass.chunk)] * share, at.end - at.start) : 0.0;
  result_.timeline.push_back({stage, pass, {at.start}, {at.end}, {recompute}});
  const double transfer = action.transfer * share;
  if (transfer > 0) result_.messages.push_back({action.from, stage, pass, {at.received - transfer}, {at.received}});
}

void Replay::summarise(const ReplayInput& input) {
  const ScheduleShape& shape = input.shape;
  double makespan = 0;
  for (const Cursor& cursor : cursors_) makespan = std::max(makespan, cursor.free);
  result_.makespan = {makespan};
  for (int stage = 0; stage < shape.stages; ++stage) {
    const Cursor& cursor = cursors_[index(stage)];
    StageReplay& out = result_.stages[index(stage)];
    const double steady_end = std::max(cursor.first_backward, cursor.last_forward);
    double recompute = 0;
    for (const Pass& pass : lists_.stage(stage))
      if (pass.kind == PassKind::backward || pass.kind == PassKind::backward_input)
        recompute += recompute_[slot(stage, pass.chunk)] * share_[static_cast<std::size_t>(pass.unit)];
    out.busy = {cursor.busy};
    out.recompute = {recompute};
    out.p2p = {cursor.p2p};
    out.bubble = {makespan - cursor.busy - cursor.p2p};
    out.warm_up = {{cursor.first_backward}, {cursor.idle[warm_up]}};
    out.steady = {{steady_end - cursor.first_backward}, {cursor.idle[steady]}};
    out.cool_down = {{makespan - steady_end}, {cursor.idle[cool_down] + makespan - cursor.free}};
    out.held = lists_.held(stage);
  }
}

const ReplayResult& Replay::run(const ScheduleRow& row, const ReplayInput& input) {
  result_.status = ReplayStatus::done;
  result_.problem.clear();
  result_.shape = input.shape;
  result_.makespan = {};
  result_.timeline.clear();
  result_.messages.clear();
  result_.stages.clear();
  if (const auto status = lists_.build(row, input.shape); status != ReplayStatus::done)
    return fail(status, lists_.problem());
  if (!check_input(row, input)) return result_;
  if (!set_up(row, input))
    return fail(ReplayStatus::invalid_input, "a micro-batch goes between stages that are no neighbours");
  result_.stages.resize(index(input.shape.stages));

  // Forwards run down the stages and backwards up, so the sweeps alternate.
  const int stages = input.shape.stages;
  bool progress = true;
  while (progress) {
    progress = false;
    const auto visit = [&](int stage) {
      Cursor& cursor = cursors_[index(stage)];
      progress = advance(cursor, stage, input.shape.parts > 1) || progress;
    };
    for (int stage = 0; stage < stages; ++stage) visit(stage);
    for (int stage = stages - 1; stage >= 0; --stage) visit(stage);
  }
  for (int stage = 0; stage < stages; ++stage) {
    const Cursor& cursor = cursors_[index(stage)];
    if (cursor.next != cursor.last)
      return fail(ReplayStatus::deadlock,
                  "stage " + std::to_string(stage) + " waits for ever at " + pass_name(*cursor.next, input.shape));
  }
  summarise(input);
  if (timeline_)
    std::stable_sort(result_.timeline.begin(), result_.timeline.end(),
                     [](const TimedPass& a, const TimedPass& b) { return a.stage < b.stage; });
  return result_;
}

}  // namespace nd::layout
