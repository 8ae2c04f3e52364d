// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/csv.hpp"
#include "nd/compare.hpp"

namespace nd::measured {

/// raw_summary.csv and benchmarks.csv of the fms-acceleration harness (foundation-model-stack/fms-acceleration, scripts/benchmarks): other
/// columns than the ones that state the run are passed over, the table has every argument of the trainer.
[[nodiscard]] Result<StepTable> read_fms_table(const formats::CsvTable& table);

}  // namespace nd::measured
