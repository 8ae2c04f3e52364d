// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nd/verify.hpp"

namespace nd::verify {

/// A census without what is no parameter of the text model; packed tensors under the name and shape of what they pack.
struct Sorted {
  std::map<std::string, CensusTensor> tensors;
  std::int64_t vision = 0, scales = 0, buffers = 0;  ///< elements
};
[[nodiscard]] Sorted sort_census(const TensorCensus& census);

/// Where the model's tensors hang in the names of the checkpoint.
struct Naming {
  std::string prefix;  ///< of the table, the final norm and "layers."
  std::string head;    ///< whole name
};
[[nodiscard]] Naming find_naming(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors);

[[nodiscard]] std::vector<ExpectedTensor> expect(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors);

}  // namespace nd::verify
