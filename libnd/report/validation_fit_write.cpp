// SPDX-License-Identifier: Apache-2.0
#include "nd/fit.hpp"
namespace nd {
Result<std::vector<std::string>> write_fitted_files(const FitReport&, const DataStore&, const std::string&) {
  return std::vector<std::string>{};
}
}  // namespace nd
