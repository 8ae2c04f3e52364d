// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/tree/scalar.hpp"
#include "tree_support.hpp"

using namespace nd::formats;

TEST_CASE("YAML values carry their exact place and path", "[yaml]") {
  const auto root = parse_yaml("a: 1\nlong_key:\n  - x\n  - {k: v,  m: [1, 2]}\nempty:\n", "f.yaml");
  REQUIRE(root);
  CHECK(place(at(*root, {"a"})) == "1:4 a");
  CHECK(at(*root, {"a"}).where.file == "f.yaml");
  const auto& list = at(*root, {"long_key"});
  CHECK(place(list) == "3:3 long_key");
  CHECK(list.key_line == 2);
  CHECK(list.key_column == 1);
  CHECK(place(list.items[0]) == "3:5 long_key[0]");
  CHECK(place(at(list.items[1], {"m"})) == "4:16 long_key[1].m");
  CHECK(place(at(list.items[1], {"m"}).items[1]) == "4:20 long_key[1].m[1]");
  CHECK(at(*root, {"empty"}).is_null());
  CHECK(place(at(*root, {"empty"})) == "5:1 empty");
  CHECK(root->members[0].first == "a");
  CHECK(root->find("nothing") == nullptr);
}

TEST_CASE("YAML columns count characters, not bytes", "[yaml]") {
  const auto root = parse_yaml("\"\xC3\xA9\xE2\x82\xAC\": [\xF0\x9F\x98\x80, 7]\n", "f");  // two characters, then one of four bytes
  REQUIRE(root);
  CHECK(place(root->members[0].second.items[1]) == "1:11 \xC3\xA9\xE2\x82\xAC[1]");
}

TEST_CASE("BOM and CRLF change nothing", "[yaml]") {
  const auto root = parse_yaml("\xEF\xBB\xBF" "a: 1\r\nb: |\r\n  x\r\n  y\r\nc: 'z'\r\n", "f");
  REQUIRE(root);
  CHECK(at(*root, {"a"}).text == "1");
  CHECK(place(at(*root, {"a"})) == "1:4 a");
  CHECK(at(*root, {"b"}).text == "x\ny\n");
  CHECK(place(at(*root, {"c"})) == "5:4 c");
  CHECK(at(*root, {"c"}).quoted);
  const auto mac = parse_yaml("a: 1\rb: 2\r", "f");
  REQUIRE(mac);
  CHECK(place(at(*mac, {"b"})) == "2:4 b");
}

TEST_CASE("YAML keys stand once", "[yaml]") {
  CHECK(outcome(parse_yaml("a: 1\nb: 2\na: 3\n", "f")) == "3:1 duplicate_key");
  CHECK(outcome(parse_yaml("x:\n  {a: 1, 'a': 2}\n", "f")) == "2:10 duplicate_key");
  CHECK(outcome(parse_yaml("x: {a: 1}\ny: {a: 1}\n", "f")) == "ok");
}

TEST_CASE("YAML keys are words", "[yaml]") {
  CHECK(outcome(parse_yaml("? [a, b]\n: 1\n", "f")) == "1:3 syntax");
  CHECK(outcome(parse_yaml("x: {: 1}\n", "f")) == "1:5 syntax");
  CHECK(outcome(parse_yaml("on: 1\n2: x\n", "f")) == "ok");
}

TEST_CASE("aliases are expanded at the place of their use", "[yaml]") {
  const auto root = parse_yaml("base: &b {x: 1, y: [2]}\ncopy: *b\nn: &n 16\nlist: [*n, *n]\n", "f");
  REQUIRE(root);
  CHECK(place(at(*root, {"copy"})) == "2:7 copy");
  CHECK(at(*root, {"copy", "x"}).text == "1");
  CHECK(place(at(*root, {"copy", "y"}).items[0]) == "1:21 copy.y[0]");
  CHECK(place(at(*root, {"list"}).items[1]) == "4:12 list[1]");
  CHECK(as_integer(at(*root, {"list"}).items[1]) == std::optional<std::int64_t>(16));
  CHECK(outcome(parse_yaml("a: *nowhere\n", "f")) == "1:4 syntax");
  CHECK(outcome(parse_yaml("a: &a [1, *a]\n", "f")) == "1:11 syntax");
  CHECK(outcome(parse_yaml("a: &a\n  b: &b {c: *a}\n", "f")) == "2:13 syntax");
  const auto again = parse_yaml("a: &x 1\nb: &x 2\nc: *x\n", "f");
  REQUIRE(again);
  CHECK(at(*again, {"c"}).text == "2");
  const auto key = parse_yaml("&k name: 1\nother: *k\n", "f");
  REQUIRE(key);
  CHECK(at(*key, {"other"}).text == "name");
}

// Expected values: yaml.safe_load of PyYAML 6.0 on the same text.
TEST_CASE("merge keys work as in PyYAML", "[yaml]") {
  const auto root = parse_yaml(
      "d: &d {a: 1, b: 2}\ne: &e {b: 3, c: 4}\none:\n  b: 9\n  <<: *d\ntwo:\n  <<: [*d, *e]\n  a: 7\nquoted: {'<<': 5}\n"
      "nested: &n {<<: *d, z: 1}\nthree: {<<: *n}\n",
      "f");
  REQUIRE(root);
  CHECK(at(*root, {"one", "a"}).text == "1");
  CHECK(at(*root, {"one", "b"}).text == "9");
  CHECK(at(*root, {"two", "a"}).text == "7");
  CHECK(at(*root, {"two", "b"}).text == "2");
  CHECK(at(*root, {"two", "c"}).text == "4");
  CHECK(at(*root, {"two", "c"}).where.path == "two.c");
  CHECK(at(*root, {"quoted", "<<"}).text == "5");
  CHECK(at(*root, {"three", "a"}).text == "1");
  CHECK(at(*root, {"three", "z"}).text == "1");
  CHECK(at(*root, {"one"}).members.size() == 2);
  CHECK(outcome(parse_yaml("a: {<<: 5}\n", "f")) == "1:5 wrong_type");
  CHECK(outcome(parse_yaml("a: {<<: [{b: 1}, 2]}\n", "f")) == "1:5 wrong_type");
}

TEST_CASE("one YAML document only, and not an empty one", "[yaml]") {
  CHECK(outcome(parse_yaml("", "f")) == "1:1 syntax");
  CHECK(outcome(parse_yaml(" \n\n", "f")) == "1:1 syntax");
  CHECK(outcome(parse_yaml("# only a comment\n", "f")) == "1:1 syntax");
  CHECK(outcome(parse_yaml("---\n", "f")) == "1:1 syntax");
  CHECK(outcome(parse_yaml("---\na: 1\n...\n", "f")) == "ok");
  CHECK(outcome(parse_yaml("a: 1\n---\nb: 2\n", "f")) == "2:1 syntax");
  const auto second = parse_yaml("a: 1\n---\nb: 2\n", "f");
  CHECK(second.error().diagnostics[0].message == "more text after the end of the document");
}

TEST_CASE("YAML syntax errors say where", "[yaml]") {
  CHECK(outcome(parse_yaml("model:\n  - just\n  a: list and a mapping\n", "f")) == "3:3 syntax");
  CHECK(outcome(parse_yaml("a: [1, 2\nb: 3\n", "f")).substr(2) != "ok");
  CHECK(outcome(parse_yaml("a: 'open\n", "f")) == "1:4 syntax");
  CHECK(outcome(parse_yaml("a: \"open", "f")) == "1:9 syntax");
  CHECK(outcome(parse_yaml("a: &x !!str \"open\n", "f")) == "1:4 syntax");
  CHECK(outcome(parse_yaml("a: 'it''s'\n", "f")) == "ok");
  CHECK(outcome(parse_yaml("a: &x 'closed'\n", "f")) == "ok");
  CHECK(outcome(parse_yaml("a: b: c\n", "f")) == "1:5 syntax");
}

TEST_CASE("tags of plain types are read, others refused", "[yaml]") {
  const auto root = parse_yaml("a: !!str 12\nb: !!int 12\nc: ! x\n", "f");
  REQUIRE(root);
  CHECK(scalar_type(at(*root, {"a"})) == ScalarType::string);
  CHECK(scalar_type(at(*root, {"b"})) == ScalarType::integer);
  CHECK(outcome(parse_yaml("a: !!python/object:os.system x\n", "f")) == "1:4 unsupported");
  CHECK(outcome(parse_yaml("a: !mine {b: 1}\n", "f")) == "1:4 unsupported");
}

TEST_CASE("multi-line and block scalars are strings", "[yaml]") {
  const auto root = parse_yaml("a: |\n  12\nb: >\n  x\n  y\nc: 1\n  2\n", "f");
  REQUIRE(root);
  CHECK(at(*root, {"a"}).text == "12\n");
  CHECK(at(*root, {"a"}).quoted);
  CHECK(at(*root, {"b"}).text == "x y\n");
  CHECK(at(*root, {"c"}).text == "1 2");
  CHECK_FALSE(as_integer(at(*root, {"c"})));
}
