// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "formats/readers/section.hpp"

namespace nd::formats {

/// What the pipeline lists of a file are measured against. Counts.
struct PipelineShape {
  std::int64_t layers = 0;  ///< body
  std::int64_t mtp = 0;     ///< MTP blocks that `offset` counts among the layers (mtp_depth); others sit behind it
  std::int64_t stages = 1, chunks = 1;
};

/// `offset` of model_config -> body layers per [chunk][stage]; empty when it is not stated or wrong (then reported). MTP blocks
/// counted in the offset are taken off the last stage, where they sit.
[[nodiscard]] std::vector<std::vector<std::int64_t>> read_offset(Section& model, const PipelineShape& pipeline);

/// recompute and select_recompute of recompute_config -> RunSpec::recompute and the lists per stage.
void read_recompute(Section& section, const PipelineShape& pipeline, RunSpec& run, Findings& findings);

}  // namespace nd::formats
