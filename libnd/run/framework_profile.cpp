// SPDX-License-Identifier: Apache-2.0
#include "nd/framework_profile.hpp"

#include <array>
#include <cstddef>

namespace nd {

const char* to_text(Dispatcher dispatcher) {
  constexpr std::array<const char*, 3> kText{"all_gather", "all_to_all", "deduplicating"};
  return kText.at(static_cast<std::size_t>(dispatcher));
}

const char* to_text(OptimizerTemporary temporary) {
  constexpr std::array<const char*, 3> kText{"none", "largest_tensor", "all_gradients"};
  return kText.at(static_cast<std::size_t>(temporary));
}

const char* to_text(DataParallelStyle style) {
  constexpr std::array<const char*, 5> kText{"megatron", "fsdp", "fsdp2", "deepspeed", "mindspore"};
  return kText.at(static_cast<std::size_t>(style));
}

}  // namespace nd
