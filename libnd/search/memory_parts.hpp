// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "nd/memory.hpp"

namespace nd::search {

struct MemoryPart {
  std::string_view name;
  Bytes StageMemory::*bytes;
};

/// The parts that sum to StageMemory::allocated, in the order of every report.
inline constexpr std::array<MemoryPart, 9> kMemoryParts{{{"parameters", &StageMemory::parameters},
                                                         {"gradients", &StageMemory::gradients},
                                                         {"optimizer_states", &StageMemory::optimizer_states},
                                                         {"workspace", &StageMemory::workspace},
                                                         {"buffers", &StageMemory::buffers},
                                                         {"activations", &StageMemory::activations},
                                                         {"logits", &StageMemory::logits},
                                                         {"working_set", &StageMemory::working_set},
                                                         {"temporary", &StageMemory::temporary}}};

}  // namespace nd::search
