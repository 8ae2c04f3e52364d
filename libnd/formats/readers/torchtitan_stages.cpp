// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/torchtitan_stages.hpp"

#include <array>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace nd::formats::torchtitan {
namespace {

// Names of torch.distributed.pipelining (get_schedule_class), as torchtitan passes them on. The first of a schedule is the one written.
constexpr std::array<ScheduleWord, 9> kWords{{{"1F1B", Schedule::one_f_one_b, false, true},
                                              {"GPipe", Schedule::gpipe, false, true},
                                              {"Interleaved1F1B", Schedule::interleaved, true, true},
                                              {"ZBVZeroBubble", Schedule::zb_v, true, true},
                                              {"DualPipeV", Schedule::dualpipe_v, true, true},
                                              {"FlexibleInterleaved1F1B", Schedule::interleaved, true, false},
                                              {"InterleavedZeroBubble", Schedule::interleaved, true, false},
                                              {"LoopedBFS", Schedule::interleaved, true, false},
                                              {"ScheduleZBVZeroBubble", Schedule::zb_v, true, true}}};

bool along_v(Schedule schedule) { return schedule == Schedule::zb_v || schedule == Schedule::dualpipe_v; }

}  // namespace

const ScheduleWord* find_schedule_word(std::string_view name) {
  for (const auto& word : kWords)
    if (core::canonical_name(word.name) == core::canonical_name(name)) return &word;
  return nullptr;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> out;
  for (const auto& word : kWords) out.emplace_back(word.name);
  return out;
}

std::string_view schedule_name(Schedule schedule) {
  for (const auto& word : kWords)
    if (word.schedule == schedule) return word.name;
  return {};
}

std::vector<std::int64_t> split_stages(const StageRequest& request, std::string& why) {
  const auto refuse = [&why](std::string reason) {
    why = std::move(reason);
    return std::vector<std::int64_t>{};
  };
  const std::int64_t units = request.layers + request.less_first + request.less_last;
  std::int64_t stages = request.pp * (request.schedule.several_chunks ? 2 : 1);
  if (request.layers_per_stage) {
    stages = core::div_ceil(units, *request.layers_per_stage);
    const std::string count = std::to_string(stages) + " virtual stages";
    if (stages % request.pp != 0) return refuse(count + " are no multiple of pp " + std::to_string(request.pp));
    if (!request.schedule.several_chunks && stages != request.pp) return refuse(count + ", but the schedule runs one per rank");
    if (request.schedule.several_chunks && stages < 2 * request.pp) return refuse(count + ", but the schedule runs two or more per rank");
    if (along_v(request.schedule.schedule) && stages != 2 * request.pp) return refuse(count + ", but the schedule runs two per rank");
  }
  if (stages > units) return refuse(std::to_string(stages) + " stages for " + std::to_string(request.layers) + " layers");
  const std::int64_t base = units / stages, rest = units % stages;
  std::vector<std::int64_t> out(static_cast<std::size_t>(stages), base);
  for (std::int64_t i = 0; i < rest; ++i) ++out[static_cast<std::size_t>(i)];
  out.front() -= request.less_first;
  out.back() -= request.less_last;
  if (out.front() < 0 || out.back() < 0) return refuse("the first or last stage gives up more layers than it has");
  return out;
}

std::vector<std::vector<std::int64_t>> per_chunk(const std::vector<std::int64_t>& virtual_stages, std::int64_t pp) {
  std::vector<std::vector<std::int64_t>> out;
  for (auto at = virtual_stages.begin(); virtual_stages.end() - at >= pp; at += pp) out.emplace_back(at, at + pp);
  return out;
}

std::vector<std::int64_t> in_model_order(const std::vector<std::vector<std::int64_t>>& chunks) {
  std::vector<std::int64_t> out;
  for (const auto& chunk : chunks) out.insert(out.end(), chunk.begin(), chunk.end());
  return out;
}

}  // namespace nd::formats::torchtitan
