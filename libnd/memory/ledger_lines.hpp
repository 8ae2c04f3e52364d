// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "memory/stage_pricer.hpp"
#include "nd/memory.hpp"

namespace nd::memory {

/// What `price` is made of, per op and tensor, at its peak instant: largest line first inside a part. The texts live as long as
/// the program.
[[nodiscard]] std::vector<MemoryLine> ledger_lines(const StageInput& input, const StagePrice& price);

}  // namespace nd::memory
