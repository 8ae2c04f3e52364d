// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/readers/section.hpp"
#include "nd/parallel_config.hpp"

namespace nd::formats::torchtitan {

/// A word of pipeline_parallel_schedule.
struct ScheduleWord {
  std::string_view name;
  Schedule schedule;
  bool several_chunks;  ///< runs more than one chunk per rank
  bool exact;           ///< false: priced as the named one
};
/// By name; nullptr when it is not known.
[[nodiscard]] const ScheduleWord* find_schedule_word(std::string_view name);
[[nodiscard]] std::vector<std::string> schedule_names();
/// TorchTitan's name of a schedule; empty when it has none.
[[nodiscard]] std::string_view schedule_name(Schedule schedule);

/// What the split depends on. Layers and stages are counts.
struct StageRequest {
  std::int64_t layers = 0, pp = 1;
  std::int64_t less_first = 1, less_last = 1;  ///< layers that embedding and head stand for
  std::optional<std::int64_t> layers_per_stage;
  ScheduleWord schedule{"1F1B", Schedule::one_f_one_b, false, true};
};

/// Body layers per virtual stage, in model order; empty, with the reason in `why`, when there is no such split. The rule of
/// torchtitan's pipeline module: virtual stages = ceil((layers + in + out) / layers per stage), or one or two per rank; the
/// units spread evenly, the first stages take the rest, and the ends give up `in` and `out`.
[[nodiscard]] std::vector<std::int64_t> split_stages(const StageRequest& request, std::string& why);
/// Virtual stages in model order -> RunSpec::layers_per_chunk, which counts round and round whatever way a schedule runs.
[[nodiscard]] std::vector<std::vector<std::int64_t>> per_chunk(const std::vector<std::int64_t>& virtual_stages, std::int64_t pp);
/// The reverse of per_chunk().
[[nodiscard]] std::vector<std::int64_t> in_model_order(const std::vector<std::vector<std::int64_t>>& chunks);

}  // namespace nd::formats::torchtitan
