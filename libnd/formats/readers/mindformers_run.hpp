// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/readers/section.hpp"
#include "nd/run_spec.hpp"

namespace nd::formats::mindformers {

/// The sections that state the run. Nested ones of `parallel` included.
struct RunSections {
  Section& context;
  Section& runner;     ///< runner_config
  Section& optimizer;
  Section& parallel;   ///< parallel
  Section& sharding;   ///< parallel.parallel_optimizer_config
  Section& pipeline;   ///< parallel.pipeline_config
  Section& degrees;    ///< parallel_config
  Section& model;      ///< model.model_config
  Section& experts;    ///< moe_config
};

/// Everything of RunSpec but the lists per stage (stage_lists.hpp).
void read_run(const RunSections& sections, bool has_experts, RunSpec& run, Findings& findings);

}  // namespace nd::formats::mindformers
