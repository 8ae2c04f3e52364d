// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "formats/readers/mindformers_section.hpp"
#include "nd/run_spec.hpp"
#include "nd/units.hpp"

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

/// Everything of RunSpec but the lists per stage (mindformers_layout.hpp).
void read_run(const RunSections& sections, bool has_experts, RunSpec& run, Findings& findings);

/// "58GB" -> 58 * 2^30: memory texts of this format count in powers of 1024 whatever the unit's spelling (B KB MB GB TB, KiB ...),
/// in any case. nullopt without a unit, with another one, or when not positive.
[[nodiscard]] std::optional<Bytes> parse_memory(std::string_view text);
/// Bytes per element of a dtype name: the first run of digits / 8. "bfloat16" and "bf16" 2, "float32" 4, "float8_e4m3" 1.
[[nodiscard]] std::optional<double> dtype_bytes(std::string_view name);

}  // namespace nd::formats::mindformers
