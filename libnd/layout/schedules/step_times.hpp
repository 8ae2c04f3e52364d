// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "nd/schedule.hpp"

namespace nd::layout {

/// Seconds of the passes of a step, chunk by chunk: value[chunk * stages + stage], each for one unit (a part of a sequence
/// takes its share). A receive that blocks its stage is part of the pass; one that runs beside is in *_wait.
struct StepTimes {
  std::size_t stages = 1;
  std::vector<double> forward, backward;            ///< backward: whole, or its input half where the schedule splits it
  std::vector<double> weight;                       ///< weight half where the schedule splits the backward, else 0
  std::vector<double> forward_wait, backward_wait;  ///< transfer between the pass waited for and this one
  bool waits = false;                               ///< some *_wait is not 0
};

/// Memory of a recurrence, kept from step to step.
struct StepScratch {
  std::vector<double> free, forward_end, backward_end, last_forward, first_backward;
};

}  // namespace nd::layout
