// SPDX-License-Identifier: Apache-2.0
#include "nd/memory.hpp"

#include <array>
#include <cstddef>

namespace nd {

const char* to_text(Instant instant) {
  constexpr std::array<const char*, 5> kText{"loss", "backward", "end_of_backward", "optimizer_step", "mask"};
  return kText.at(static_cast<std::size_t>(instant));
}

const char* to_text(Fit fit) {
  constexpr std::array<const char*, 3> kText{"yes", "tight", "no"};
  return kText.at(static_cast<std::size_t>(fit));
}

}  // namespace nd
