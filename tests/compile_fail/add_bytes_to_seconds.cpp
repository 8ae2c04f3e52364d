// SPDX-License-Identifier: Apache-2.0
#include "nd/units.hpp"

nd::Bytes total(nd::Bytes a, nd::Bytes b, [[maybe_unused]] nd::Seconds t) {
#ifdef ND_BAD
  return a + b + t;
#else
  return a + b;
#endif
}
