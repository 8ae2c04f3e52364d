// SPDX-License-Identifier: Apache-2.0
#include "nd/units.hpp"

double as_number(nd::Bytes amount) { return amount.value; }

double use() {
#ifdef ND_BAD
  return as_number(3.0);
#else
  return as_number(nd::Bytes{3.0});
#endif
}
