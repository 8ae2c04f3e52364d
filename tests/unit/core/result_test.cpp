// SPDX-License-Identifier: Apache-2.0
#include "nd/result.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace {
nd::Result<int> half(int n) {
  if (n % 2 != 0) return nd::make_error(nd::Errc::out_of_range, {"a.yaml", 3, 5, "x.y"}, "must be even, got 3", "use 2 or 4");
  return n / 2;
}
}  // namespace

TEST_CASE("a result holds a value or its diagnostics", "[result]") {
  CHECK(half(4).value() == 2);
  CHECK_FALSE(half(3).has_value());
  CHECK(half(3).error().code() == nd::Errc::out_of_range);
  CHECK_THROWS_AS(half(3).value(), nd::InternalError);
  CHECK_THROWS_AS(half(4).error(), nd::InternalError);
}

TEST_CASE("results chain", "[result]") {
  CHECK(half(8).and_then([](int n) { return half(n); }).value() == 2);
  CHECK_FALSE(half(6).and_then([](int n) { return half(n); }).has_value());
  CHECK(half(8).transform([](int n) { return std::to_string(n); }).value() == "4");
}

TEST_CASE("diagnostics read file, line, column, field, message, hint", "[result]") {
  CHECK(nd::to_text(half(3).error().diagnostics.front()) == "error: a.yaml:3:5: x.y: must be even, got 3 (use 2 or 4)");
  CHECK(nd::to_text(nd::make_diagnostic(nd::Errc::io, {"b.yaml", 0, 0, ""}, "no such file")) == "error: b.yaml: no such file");
  CHECK(nd::to_text(nd::make_diagnostic(nd::Errc::conflict, {"", 0, 0, "-d"}, "not a number")) == "error: -d: not a number");
}

TEST_CASE("a broken invariant names its condition", "[result]") {
  CHECK_THROWS_WITH([] { ND_CHECK(1 + 1 == 3); }(), Catch::Contains("1 + 1 == 3"));
}
