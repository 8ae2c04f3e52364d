// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/device.hpp"
#include "nd/framework_profile.hpp"
#include "nd/model_spec.hpp"
#include "nd/run_spec.hpp"

namespace nd {

/// All that a price depends on except the strategy. Immutable while pricing; share it between threads by const reference.
struct Scenario {
  ResolvedModel model;
  ResolvedRun run;
  FrameworkProfile profile;  ///< with the run's features applied
  Cluster cluster;
};

}  // namespace nd
