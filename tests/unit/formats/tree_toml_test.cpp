// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/tree/scalar.hpp"
#include "tree_support.hpp"

using namespace nd::formats;

TEST_CASE("TOML values carry place, order and type", "[toml]") {
  const auto root = parse_toml("[z]\nb = 2_000  # two thousand\na = \"12\"\n[z.sub.deep]\nr = 1e-5\nhex = 0x10\nyes = true\n[[list]]\nx = [1, 2.0]\n[[list]]\nday = 2024-01-02\n", "f.toml");
  REQUIRE(root);
  CHECK(root->members[0].first == "z");
  CHECK(root->members[1].first == "list");
  CHECK(at(*root, {"z"}).members[0].first == "b");
  CHECK(place(at(*root, {"z", "b"})) == "2:5 z.b");
  CHECK(at(*root, {"z", "b"}).key_column == 1);
  CHECK(as_integer(at(*root, {"z", "b"})) == std::optional<std::int64_t>(2000));
  CHECK(scalar_type(at(*root, {"z", "a"})) == ScalarType::string);
  CHECK(scalar_type(at(*root, {"z", "sub", "deep", "r"})) == ScalarType::real);
  CHECK(as_real(at(*root, {"z", "sub", "deep", "r"})) == std::optional<double>(1e-5));
  CHECK(as_integer(at(*root, {"z", "sub", "deep", "hex"})) == std::optional<std::int64_t>(16));
  CHECK(as_boolean(at(*root, {"z", "sub", "deep", "yes"})) == std::optional<bool>(true));
  const auto& list = at(*root, {"list"});
  REQUIRE(list.items.size() == 2);
  CHECK(place(at(list.items[0], {"x"}).items[1]) == "9:9 list[0].x[1]");
  CHECK(scalar_type(at(list.items[0], {"x"}).items[1]) == ScalarType::real);
  CHECK(at(list.items[1], {"day"}).text == "2024-01-02");
}

TEST_CASE("TOML refusals", "[toml]") {
  CHECK(outcome(parse_toml("a = 1\na = 2\n", "f")) == "2:5 duplicate_key");
  CHECK(outcome(parse_toml("a = \n", "f")).find("1:") == 0);
  CHECK(outcome(parse_toml("[a\n", "f")).find("syntax") != std::string::npos);
  CHECK(outcome(parse_toml("", "f")) == "1:1 syntax");
  CHECK(outcome(parse_toml("a = inf\n", "f")) == "ok");
  CHECK_FALSE(as_real(at(*parse_toml("a = inf\n", "f"), {"a"})));
}
