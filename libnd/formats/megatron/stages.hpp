// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/megatron/fields.hpp"
#include "formats/megatron/model.hpp"
#include "nd/run_spec.hpp"

namespace nd::formats::megatron {

/// Which layers each stage and chunk holds and recomputes: pp, vpp, schedule, layers_per_chunk and the recompute fields of `run`.
/// Reads tp of `run`; problems go to `fields`.
void read_stages(Fields& fields, const Model& model, RunSpec& run);

/// Body layers of one stage of --pipeline-model-parallel-layout.
struct LayoutStage {
  std::int64_t layers = 0, mtp = 0;
  bool embedding = false, loss = false;
  friend bool operator==(const LayoutStage&, const LayoutStage&) = default;
};
/// "Et*3|(tt|)*2,m|L": E embedding, t layer, m MTP block, L loss, '|' next stage, (...)*n and x*n repeat. nullopt: no such text.
[[nodiscard]] std::optional<std::vector<LayoutStage>> parse_layout(std::string_view text);

}  // namespace nd::formats::megatron
