// SPDX-License-Identifier: Apache-2.0
#include "nd/units.hpp"

#include <catch2/catch.hpp>

using namespace nd::literals;

TEST_CASE("amounts over rates are times", "[units]") {
  const nd::Bytes amount{50e9};
  const nd::BytesPerSecond rate{25e9};
  CHECK((amount / rate).value == 2.0);
  CHECK((nd::Flops{3e15} / nd::FlopsPerSecond{1e15}).value == 3.0);
  CHECK((rate * nd::Seconds{2.0}).value == 50e9);
}

TEST_CASE("binary and decimal literals differ", "[units]") {
  CHECK((1_GiB).value == 1073741824.0);
  CHECK((1_GB).value == 1e9);
  CHECK((64_MiB / 1_MiB) == 64.0);
  CHECK(nd::to_gib(58_GiB) == 58.0);
}

TEST_CASE("like amounts add, compare and scale", "[units]") {
  nd::Bytes sum = 1_KiB + 1_KiB;
  sum += 1_KiB;
  CHECK(sum == 3_KiB);
  CHECK(sum * 2.0 == 6_KiB);
  CHECK(sum / 3.0 == 1_KiB);
  CHECK(1_KiB < 1_MiB);
}
