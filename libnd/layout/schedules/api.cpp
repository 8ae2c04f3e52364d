// SPDX-License-Identifier: Apache-2.0
// The public functions of nd/schedule.hpp over the table and the replay.
#include <algorithm>

#include "core/text.hpp"
#include "layout/replay.hpp"
#include "layout/schedules/table.hpp"

namespace nd {

namespace {

/// Names are compared without case and separators: "Seq-1F1B", "dualpipev".
std::string bare_name(std::string_view name) {
  std::string out = core::canonical_name(core::trim(name));
  out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
  return out;
}

}  // namespace

double ReplayResult::bubble_fraction() const {
  if (stages.empty() || makespan.value <= 0) return 0;
  double idle = 0;
  for (const StageReplay& stage : stages) idle += stage.bubble.value;
  return idle / (static_cast<double>(stages.size()) * makespan.value);
}

ScheduleShape schedule_shape(const ParallelConfig& config) {
  const bool grouped = config.schedule == Schedule::interleaved && config.micro_batch_group != config.pp;
  return {.stages = config.pp,
          .chunks = config.vpp,
          .micro_batches = config.micro_batch_num,
          .parts = config.seq_split,
          .group = grouped ? config.micro_batch_group : 0};
}

std::string_view schedule_title(Schedule schedule) { return layout::schedule_row(schedule).title; }

std::optional<Schedule> find_schedule(std::string_view name) {
  const std::string wanted = bare_name(name);
  for (const auto& row : layout::schedule_table()) {
    if (bare_name(row.name) == wanted) return row.id;
    for (const auto& alias : core::split(row.aliases, ' '))
      if (!alias.empty() && bare_name(alias) == wanted) return row.id;
  }
  return std::nullopt;
}

ScheduleInfo schedule_info(Schedule schedule) {
  const auto& row = layout::schedule_row(schedule);
  return {.id = row.id, .name = row.name, .title = row.title, .aliases = row.aliases, .rule = row.rule, .splits_backward = row.splits_backward};
}

std::vector<Schedule> all_schedules() {
  std::vector<Schedule> out;
  for (const auto& row : layout::schedule_table()) out.push_back(row.id);
  return out;
}

std::optional<std::string_view> why_invalid(Schedule schedule, const ScheduleShape& shape) {
  return layout::why_invalid(layout::schedule_row(schedule), shape);
}

int schedule_chunks(Schedule schedule, const ScheduleShape& shape) {
  return layout::schedule_row(schedule).local_chunks(shape);
}

int chunk_position(Schedule schedule, const ScheduleShape& shape, int stage, int chunk) {
  return layout::schedule_row(schedule).position(shape, stage, chunk);
}

std::vector<Pass> stage_passes(Schedule schedule, const ScheduleShape& shape, int stage) {
  std::vector<Pass> out;
  if (!why_invalid(schedule, shape) && stage >= 0 && stage < shape.stages)
    layout::schedule_row(schedule).passes(shape, stage, out);
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
