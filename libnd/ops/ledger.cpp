// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "nd/ops.hpp"

namespace nd {

double LayerLedger::saved_bytes(Recompute mode) const {
  double sum = mode == Recompute::full ? layer_input_bytes : 0.0;
  for (const SavedTensor& tensor : saved)
    if (tensor.kept[static_cast<std::size_t>(mode)]) sum += tensor.bytes;
  return sum;
}

double LayerLedger::parameter_elements(ParameterClass sharding) const {
  double sum = 0;
  for (const ParameterBlock& block : parameters)
    if (block.sharding == sharding) sum += block.elements;
  return sum;
}

}  // namespace nd
