// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "layout/schedules/row.hpp"

namespace nd::layout {

/// Where a stage stands in a two-way order. A stage sees two flows: phase 0 comes in at its own end of the pipeline,
/// phase 1 from the far end.
struct TwoWayStage {
  int depth = 1;          ///< stages from an end to the middle
  int from_end = 0;       ///< this stage's distance from its end, 0 .. depth - 1
  int micro_batches = 1;  ///< of each phase
  bool swapped = false;   ///< phase 0 runs through chunk 1
  bool second_batch =
      false;  ///< chunk 1 has micro-batches of its own (numbers from `micro_batches` on), not those of chunk 0
};

/// DualPipe's order (DeepSeek-V3 report, section 3.2.1; steps 1 to 8 of the DualPipe repository), shared with
/// DualPipeV.
void two_way_passes(const TwoWayStage& stage, PassList& out);

/// Chunks held: 2 depth + 1 at every stage (the repository's PP + 1), of which weight gradients wait for from_end + 1.
[[nodiscard]] HeldPeak two_way_held(int depth, int from_end);

/// The published bubble (depth - 1)(F&B + B - 3W). It equals the replay on every stage when F = B - W, W <= F and F&B =
/// F + B; with F&B < F + B it is the bubble of the end stages and the inner ones wait less; else there is no closed
/// form.
[[nodiscard]] std::optional<double> two_way_bubble(int depth, const UniformTimes& times);

}  // namespace nd::layout
