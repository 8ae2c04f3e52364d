// SPDX-License-Identifier: Apache-2.0
#include "layout/replay.hpp"

#include <algorithm>
#include <cmath>

#include "layout/schedules/table.hpp"

namespace nd::layout {

namespace {

constexpr std::size_t kKinds = 4;
constexpr double kNotYet = -1;

std::size_t index(int n) { return static_cast<std::size_t>(n); }

bool is_amount(Seconds time) { return std::isfinite(time.value) && time.value >= 0; }

bool all_amounts(const PassTimes& t) {
  return is_amount(t.forward) && is_amount(t.backward_input) && is_amount(t.backward_weight) && is_amount(t.recompute) &&
         is_amount(t.joined_saving);
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
  if (input.times.size() != index(shape.stages) * index(row.local_chunks(shape))) return refuse("one set of times per stage and chunk is needed");
  if (!std::all_of(input.times.begin(), input.times.end(), all_amounts)) return refuse("a time is negative or not a number");
  if (input.hop.size() > 1 && input.hop.size() != index(shape.stages)) return refuse("transfer times: none, one, or one per stage");
  if (!std::all_of(input.hop.begin(), input.hop.end(), is_amount)) return refuse("a transfer time is negative or not a number");
  if (!input.part_share.empty() && input.part_share.size() != index(shape.parts)) return refuse("one share per part of a sequence is needed");
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
  // Stages exchange data with their neighbours on the ring only.
  bool neighbours = true;
  const auto receive_from = [&](Action& action, int other) {
    if (other == stage) return;
    action.from = other;
    const bool onward = (other + 1) % shape.stages == stage, back = (stage + 1) % shape.stages == other;
    neighbours = neighbours && (onward || back);
    if (!input.hop.empty()) action.transfer = input.hop.size() == 1 ? input.hop[0].value : input.hop[index(onward ? other : stage)].value;
  };

  const auto slot = index(stage * lists_.local_chunks() + chunk);
  const PassTimes& t = input.times[slot];
  Action* const actions = actions_.data() + slot * kKinds;
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
  saving_[slot] = t.joined_saving.value;
  recompute_[slot] = t.recompute.value;
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

template <bool kParts>
bool Replay::advance(Cursor& cursor, int stage) {
  const Action* const actions = actions_of(stage);
  const Pass* const begin = cursor.next;
  double free = cursor.free;
  const auto action_of = [&](const Pass& pass) -> const Action& {
    return actions[static_cast<std::size_t>(pass.chunk) * kKinds + static_cast<std::size_t>(pass.kind)];
  };
  const auto enter = [&](const Pass& pass, double start, double end, double idle) {
    cursor.idle[cursor.phase] += idle;
    if (pass.kind == PassKind::forward) {
      cursor.last_forward = end;
      if (--cursor.forwards_left == 0 && cursor.phase == 1) cursor.phase = 2;
    } else if (cursor.phase == 0) {
      cursor.first_backward = start;
      cursor.phase = cursor.forwards_left > 0 ? 1 : 2;
    }
  };
  while (cursor.next != cursor.last) {
    const Pass& pass = *cursor.next;
    const auto unit = static_cast<std::size_t>(pass.unit);
    const Action& action = action_of(pass);
    double ready = action.after[unit];
    if (ready < 0) break;
    double seconds = kParts ? action.seconds * share_[unit] : action.seconds;
    double transfer = kParts ? action.transfer * share_[unit] : action.transfer;
    if (!pass.joined) {
      const double waited = std::max(free, exposed_ ? ready : ready + transfer);
      const double start = exposed_ ? waited + transfer : waited;
      const double end = start + seconds;
      if (exposed_) cursor.p2p += transfer;
      action.end[unit] = end;
      cursor.busy += seconds;
      enter(pass, start, end, waited - free);
      if (timeline_) record(stage, pass, start, end, exposed_ ? start : ready + transfer);
      free = end;
      ++cursor.next;
      continue;
    }
    // Two passes as one block: both inputs are awaited, both outputs are there at its end. Opposite transfers run side by side.
    const Pass& second = cursor.next[1];
    const Action& other = action_of(second);
    const auto other_unit = static_cast<std::size_t>(second.unit);
    const double other_ready = other.after[other_unit];
    if (other_ready < 0) break;
    const double other_transfer = kParts ? other.transfer * share_[other_unit] : other.transfer;
    const double other_seconds = kParts ? other.seconds * share_[other_unit] : other.seconds;
    const double saved = saving_[static_cast<std::size_t>(stage * lists_.local_chunks() + pass.chunk)];
    const double block = std::max(seconds + other_seconds - saved, std::max(seconds, other_seconds));
    double waited = std::max(free, std::max(exposed_ ? ready : ready + transfer, exposed_ ? other_ready : other_ready + other_transfer));
    const double blocked = exposed_ ? std::max(transfer, other_transfer) : 0;
    const double start = waited + blocked, end = start + block;
    cursor.p2p += blocked;
    cursor.busy += block;
    action.end[unit] = end;
    other.end[other_unit] = end;
    enter(pass, start, end, waited - free);
    enter(second, start, end, 0);
    if (timeline_) {
      // Shown one after the other, each with its share of the block.
      const double seam = seconds + other_seconds > 0 ? start + block * seconds / (seconds + other_seconds) : start;
      record(stage, pass, start, seam, exposed_ ? start : ready + transfer);
      record(stage, second, seam, end, exposed_ ? start : other_ready + other_transfer);
    }
    free = end;
    cursor.next += 2;
  }
  cursor.free = free;
  return cursor.next != begin;
}

void Replay::record(int stage, const Pass& pass, double start, double end, double received) {
  const auto slot = index(stage * lists_.local_chunks() + pass.chunk);
  const Action& action = actions_[slot * kKinds + static_cast<std::size_t>(pass.kind)];
  const double share = share_[static_cast<std::size_t>(pass.unit)];
  const bool again = pass.kind == PassKind::backward || pass.kind == PassKind::backward_input;
  result_.timeline.push_back({stage, pass, {start}, {end}, {again ? std::min(recompute_[slot] * share, end - start) : 0.0}});
  const double transfer = action.transfer * share;
  if (transfer > 0) result_.messages.push_back({action.from, stage, pass, {received - transfer}, {received}});
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
        recompute += recompute_[index(stage * lists_.local_chunks() + pass.chunk)] * share_[static_cast<std::size_t>(pass.unit)];
    out.busy = {cursor.busy};
    out.recompute = {recompute};
    out.p2p = {cursor.p2p};
    out.bubble = {makespan - cursor.busy - cursor.p2p};
    out.warm_up = {{cursor.first_backward}, {cursor.idle[0]}};
    out.steady = {{steady_end - cursor.first_backward}, {cursor.idle[1]}};
    out.cool_down = {{makespan - steady_end}, {cursor.idle[2] + makespan - cursor.free}};
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
  if (const auto status = lists_.build(row, input.shape); status != ReplayStatus::done) return fail(status, lists_.problem());
  if (!check_input(row, input)) return result_;
  if (!set_up(row, input)) return fail(ReplayStatus::invalid_input, "a micro-batch goes between stages that are no neighbours");
  result_.stages.resize(index(input.shape.stages));

  // Forwards run down the stages and backwards up, so the sweeps alternate.
  const int stages = input.shape.stages;
  bool progress = true;
  while (progress) {
    progress = false;
    const auto visit = [&](int stage) {
      Cursor& cursor = cursors_[index(stage)];
      const bool moved = input.shape.parts > 1 ? advance<true>(cursor, stage) : advance<false>(cursor, stage);
      progress = progress || moved;
    };
    for (int stage = 0; stage < stages; ++stage) visit(stage);
    for (int stage = stages - 1; stage >= 0; --stage) visit(stage);
  }
  for (int stage = 0; stage < stages; ++stage) {
    const Cursor& cursor = cursors_[index(stage)];
    if (cursor.next != cursor.last)
      return fail(ReplayStatus::deadlock, "stage " + std::to_string(stage) + " waits for ever at " + pass_name(*cursor.next, input.shape));
  }
  summarise(input);
  if (timeline_)
    std::stable_sort(result_.timeline.begin(), result_.timeline.end(), [](const TimedPass& a, const TimedPass& b) { return a.stage < b.stage; });
  return result_;
}

}  // namespace nd::layout

namespace nd {

double ReplayResult::bubble_fraction() const {
  if (stages.empty() || makespan.value <= 0) return 0;
  double idle = 0;
  for (const StageReplay& stage : stages) idle += stage.bubble.value;
  return idle / (static_cast<double>(stages.size()) * makespan.value);
}

ScheduleShape schedule_shape(const ParallelConfig& config) {
  return {.stages = config.pp, .chunks = config.vpp, .micro_batches = config.micro_batch_num, .parts = config.seq_split};
}

std::string_view schedule_title(Schedule schedule) { return layout::schedule_row(schedule).title; }

std::optional<Schedule> find_schedule(std::string_view name) {
  for (const auto& row : layout::schedule_table())
    if (row.name == name) return row.id;
  return std::nullopt;
}

std::vector<Schedule> all_schedules() {
  std::vector<Schedule> out;
  for (const auto& row : layout::schedule_table()) out.push_back(row.id);
  return out;
}

std::optional<std::string_view> why_invalid(Schedule schedule, const ScheduleShape& shape) {
  return layout::why_invalid(layout::schedule_row(schedule), shape);
}

int schedule_chunks(Schedule schedule, const ScheduleShape& shape) { return layout::schedule_row(schedule).local_chunks(shape); }

int chunk_position(Schedule schedule, const ScheduleShape& shape, int stage, int chunk) {
  return layout::schedule_row(schedule).position(shape, stage, chunk);
}

std::vector<Pass> stage_passes(Schedule schedule, const ScheduleShape& shape, int stage) {
  std::vector<Pass> out;
  if (!why_invalid(schedule, shape) && stage >= 0 && stage < shape.stages) layout::schedule_row(schedule).passes(shape, stage, out);
  return out;
}

ReplayResult replay_schedule(Schedule schedule, const ReplayInput& input) {
  layout::Replay replay;
  return replay.run(layout::schedule_row(schedule), input);
}

std::string pass_name(const Pass& pass, const ScheduleShape& shape) {
  static constexpr const char* kKind[] = {"F", "B", "Bi", "W"};
  std::string out = kKind[static_cast<std::size_t>(pass.kind)] + std::to_string(pass.unit / shape.parts + 1);
  if (shape.parts > 1) out += "/" + std::to_string(pass.unit % shape.parts + 1);
  if (shape.chunks > 1) out += "." + std::to_string(pass.chunk + 1);
  return out;
}

}  // namespace nd
