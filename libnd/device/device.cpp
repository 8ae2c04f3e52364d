// SPDX-License-Identifier: Apache-2.0
#include "nd/device.hpp"

#include <array>
#include <cstddef>

namespace nd {

const char* to_text(Dtype dtype) {
  constexpr std::array<const char*, kDtypeCount> kText{"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
  return kText.at(static_cast<std::size_t>(dtype));
}

const char* to_text(CollectiveKind kind) {
  constexpr std::array<const char*, kCollectiveKindCount> kText{"all_reduce", "all_gather",   "reduce_scatter",
                                                                "all_to_all", "send_receive", "broadcast"};
  return kText.at(static_cast<std::size_t>(kind));
}

const char* to_text(FigureKind kind) {
  constexpr std::array<const char*, 4> kText{"measured", "datasheet", "assumed", "fitted"};
  return kText.at(static_cast<std::size_t>(kind));
}

}  // namespace nd
