// SPDX-License-Identifier: Apache-2.0
#include "nd/result.hpp"

nd::Result<int> answer();

void use() {
#ifdef ND_BAD
  answer();
#else
  const auto result = answer();
  static_cast<void>(result);
#endif
}
