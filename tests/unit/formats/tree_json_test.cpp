// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/tree/scalar.hpp"
#include "tree_support.hpp"

using namespace nd::formats;

TEST_CASE("JSON values carry their exact place", "[json]") {
  const auto root = parse_json("{\n  \"a\": 1, \"b\" : [ -2.5e-3 , \"x\\\"]\", {\"c\":null}],\n\t\"d\": true}\n", "f.json");
  REQUIRE(root);
  CHECK(place(*root) == "1:1 ");
  CHECK(place(at(*root, {"a"})) == "2:8 a");
  CHECK(at(*root, {"a"}).key_column == 3);
  const auto& list = at(*root, {"b"});
  CHECK(place(list) == "2:17 b");
  CHECK(place(list.items[0]) == "2:19 b[0]");
  CHECK(place(list.items[1]) == "2:29 b[1]");
  CHECK(list.items[1].text == "x\"]");
  CHECK(place(list.items[2]) == "2:37 b[2]");
  CHECK(at(list.items[2], {"c"}).is_null());
  CHECK(place(at(*root, {"d"})) == "3:7 d");
}

TEST_CASE("JSON types are JSON's own", "[json]") {
  const auto root = parse_json(R"({"s": "12", "i": 12, "r": 1e5, "small": 1e-5, "b": false, "big": 18446744073709551616, "n": null, "t": "true", "w": 2.0})", "f");
  REQUIRE(root);
  CHECK(scalar_type(at(*root, {"s"})) == ScalarType::string);
  CHECK(at(*root, {"s"}).quoted);
  CHECK(scalar_type(at(*root, {"i"})) == ScalarType::integer);
  CHECK(scalar_type(at(*root, {"r"})) == ScalarType::real);
  CHECK(as_real(at(*root, {"r"})) == std::optional<double>(1e5));
  CHECK(scalar_type(at(*root, {"small"})) == ScalarType::real);
  CHECK(as_real(at(*root, {"small"})) == std::optional<double>(1e-5));
  CHECK(as_boolean(at(*root, {"b"})) == std::optional<bool>(false));
  CHECK(scalar_type(at(*root, {"big"})) == ScalarType::integer);
  CHECK_FALSE(as_integer(at(*root, {"big"})));
  CHECK(at(*root, {"n"}).is_null());
  CHECK(scalar_type(at(*root, {"t"})) == ScalarType::string);
  CHECK(as_integer(at(*root, {"w"})) == std::optional<std::int64_t>(2));
}

TEST_CASE("JSON refusals", "[json]") {
  CHECK(outcome(parse_json("{\"a\": 1,\n \"a\": 2}", "f")) == "2:2 duplicate_key");
  CHECK(outcome(parse_json("{\"model_type\": \"llama\", \"hidden_size\": 4096,\n", "f")) == "2:1 syntax");
  CHECK(outcome(parse_json("{\"a\": 1}\n{\"b\": 2}", "f")) == "2:1 syntax");
  CHECK(outcome(parse_json("{\"a\": nul}", "f")) == "1:10 syntax");
  CHECK(outcome(parse_json("{'a': 1}", "f")) == "1:2 syntax");
  CHECK(outcome(parse_json("{\"a\": 1,}", "f")) == "1:9 syntax");
  CHECK(outcome(parse_json("{\"a\": 1e400}", "f")).find("syntax") != std::string::npos);
  CHECK(outcome(parse_json("", "f")) == "1:1 syntax");
  CHECK(outcome(parse_json("null", "f")) == "1:1 syntax");
  CHECK(outcome(parse_json("\xEF\xBB\xBF{\"a\": 1}", "f")) == "ok");
  CHECK(parse_json("{\"a\": ", "f").error().diagnostics[0].message.find("json.exception") == std::string::npos);
}
