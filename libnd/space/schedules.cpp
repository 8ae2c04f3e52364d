// SPDX-License-Identifier: Apache-2.0
#include "nd/schedule.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "nd/search_space.hpp"
#include "space/constraints.hpp"

namespace nd {

std::vector<Schedule> supported_schedules(const CapabilityProfile& can) {
  std::vector<Schedule> out;
  if (!can.pipeline_parallel) return {Schedule::one_f_one_b};
  for (const auto& name : core::split(can.schedules, ',')) {
    const auto schedule = find_schedule(name);
    if (schedule && (*schedule != Schedule::interleaved || can.interleaved)) out.push_back(*schedule);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace space {

namespace {

bool has_whole_rounds(const SpaceContext& context, const ParallelConfig& config) {
  return context.can.interleaved_any_batches || config.micro_batch_num % config.pp == 0;
}

}  // namespace

Verdict check_schedule(const SpaceContext& context, const ParallelConfig& config) {
  if (!context.offers(config.schedule)) return Rejection::schedule_unsupported;
  // PipelineReplay and the memory model need pass lists that exist: the row of the schedule table decides.
  const bool rounds = config.schedule != Schedule::interleaved || config.vpp == 1 || has_whole_rounds(context, config);
  if (!rounds) return Rejection::micro_batches_below_stages;
  if (!why_invalid(config.schedule, schedule_shape(config))) return std::nullopt;
  // The same shape with many micro-batches tells which of the two is in the way.
  ScheduleShape many = schedule_shape(config);
  many.micro_batches = 4 * many.stages * many.chunks;
  return why_invalid(config.schedule, many) ? Rejection::schedule_unsupported : Rejection::micro_batches_below_stages;
}

std::string schedule_problem(const SpaceContext& context, const ParallelConfig& config) {
  const std::string name(schedule_info(config.schedule).name);
  if (!context.offers(config.schedule)) {
    std::string list;
    for (const Schedule schedule : supported_schedules(context.can)) list += (list.empty() ? "" : ", ") + std::string(schedule_info(schedule).name);
    return context.scenario.profile.name + " does not offer " + name + ", it offers " + list;
  }
  if (const auto why = why_invalid(config.schedule, schedule_shape(config))) return std::string(*why);
  if (config.schedule == Schedule::interleaved && !has_whole_rounds(context, config))
    return context.scenario.profile.name + " runs interleaved with multiples of pp micro-batches only";
  return {};
}

}  // namespace space

}  // namespace nd
