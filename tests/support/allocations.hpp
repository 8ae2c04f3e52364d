// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace nd::test {

/// Heap allocations of this program so far. Only in programs that link support/allocations.cpp, which replaces operator new.
[[nodiscard]] std::int64_t allocations();

}  // namespace nd::test
