// SPDX-License-Identifier: Apache-2.0
#include "formats/write/config_editor.hpp"

#include <catch2/catch.hpp>

using namespace nd;
using namespace nd::formats;

namespace {

struct Change {
  std::string path;
  WrittenValue value;
};

/// The text after the changes, or the first problem.
std::string changed(const std::string& text, const std::vector<Change>& changes, Syntax syntax = Syntax::yaml) {
  auto editor = ConfigEditor::open(text, "f", syntax);
  REQUIRE(editor);
  for (const auto& [path, value] : changes) editor->set(path, value);
  const auto out = editor->finish();
  return out ? *out : to_text(out.error().diagnostics.front());
}

std::string removed(const std::string& text, const std::vector<std::string>& paths, Syntax syntax = Syntax::yaml) {
  auto editor = ConfigEditor::open(text, "f", syntax);
  REQUIRE(editor);
  for (const auto& path : paths) editor->remove(path);
  const auto out = editor->finish();
  return out ? *out : to_text(out.error().diagnostics.front());
}

const WrittenValue kTwo = std::int64_t{2};

}  // namespace

TEST_CASE("YAML: a value changes, comments, order and quotes stay", "[write]") {
  CHECK(changed("# head\nb: 1   # one\na: 'x'\n\nc:\n  d: \"y\" # why\n", {{"b", kTwo}, {"a", std::string("z")}, {"c.d", std::string("w")}}) ==
        "# head\nb: 2   # one\na: 'z'\n\nc:\n  d: \"w\" # why\n");
  CHECK(changed("a: 1", {{"a", kTwo}}) == "a: 2");
  CHECK(changed("a: {b: 1, c: 3} # x\n", {{"a.b", kTwo}}) == "a: {b: 2, c: 3} # x\n");
  CHECK(changed("a: True\nb: off\n", {{"a", false}, {"b", true}}) == "a: False\nb: true\n");
  CHECK(changed("a: 1\r\nb: 1\r\n", {{"b", kTwo}, {"c", kTwo}}) == "a: 1\r\nb: 2\r\nc: 2\r\n");
  CHECK(changed("\xEF\xBB\xBF" "a: 1\n", {{"a", kTwo}}) == "\xEF\xBB\xBF" "a: 2\n");
  CHECK(changed("\xC3\xA4: 1\nn: {\xC3\xB6: x, a: 1}\n", {{"n.a", kTwo}}) == "\xC3\xA4: 1\nn: {\xC3\xB6: x, a: 2}\n");
}

TEST_CASE("YAML: what reads the same already is left as it is written", "[write]") {
  const std::string text = "a: 0x10\nb: yes\nc: [1, 2]\nd: Some-Word\ne:\n- 1\n- 2\n";
  CHECK(changed(text, {{"a", std::int64_t{16}}, {"b", true}, {"c", std::vector<std::int64_t>{1, 2}}, {"d", std::string("some_word")}, {"e", std::vector<std::int64_t>{1, 2}}}) == text);
}

TEST_CASE("YAML: lists take the place of whatever stood there", "[write]") {
  const std::vector<std::int64_t> list{0, 1};
  CHECK(changed("a: 0 # offset\nb: 1\n", {{"a", list}}) == "a: [0, 1] # offset\nb: 1\n");
  CHECK(changed("a:\n  - 3\n  - 4\n# next\nb: 1\n", {{"a", list}}) == "a: [0, 1]\n# next\nb: 1\n");
  CHECK(changed("a: [[1, 2],\n    [3, 4]]\nb: 1\n", {{"a", kTwo}}) == "a: 2\nb: 1\n");
  CHECK(changed("a: 1\n", {{"a", std::vector<std::vector<std::int64_t>>{{1}, {-2}}}}) == "a: [[1], [-2]]\n");
}

TEST_CASE("YAML: a missing key goes behind the last one of its section", "[write]") {
  CHECK(changed("a:\n  b: 1 # one\n\n# about c\nc: 3\n", {{"a.x", kTwo}}) == "a:\n  b: 1 # one\n  x: 2\n\n# about c\nc: 3\n");
  CHECK(changed("a:\n    b:\n        d: 1\nc: 3\n", {{"a.x", kTwo}}) == "a:\n    b:\n        d: 1\n    x: 2\nc: 3\n");
  CHECK(changed("a: {}\n", {{"a.x", kTwo}}) == "a: {x: 2}\n");
  CHECK(changed("a: {b: 1}\n", {{"a.x", kTwo}, {"a.y", true}}) == "a: {b: 1, x: 2, y: true}\n");
  CHECK(changed("a:\nc: 3\n", {{"a.x", kTwo}}) == "a:\n  x: 2\nc: 3\n");
  CHECK(changed("a: ~ # none\nc: 3\n", {{"a", kTwo}}) == "a: 2 # none\nc: 3\n");
  CHECK(changed("a: 1\n", {{"b.c", kTwo}, {"b.d.e", std::string("off")}}) == "a: 1\nb:\n  c: 2\n  d:\n    e: \"off\"\n");
  CHECK(changed("a: |\n  text\n  more\nb:\n  c: 1\n", {{"x", kTwo}, {"b.y", kTwo}}) == "a: |\n  text\n  more\nb:\n  c: 1\n  y: 2\nx: 2\n");
  CHECK(changed("b:\n  c: one\n    two\n", {{"b.y", kTwo}}) == "b:\n  c: one\n    two\n  y: 2\n");
  CHECK(changed("b:\n  - 1\n  - x: 3\n", {{"y", kTwo}}) == "b:\n  - 1\n  - x: 3\ny: 2\n");
}

TEST_CASE("YAML: aliases follow the value they stand for", "[write]") {
  CHECK(changed("dp: &dp 16\nop: *dp\nmore: [*dp, 3]\n", {{"dp", std::int64_t{8}}}) == "dp: &dp 8\nop: *dp\nmore: [*dp, 3]\n");
  CHECK(changed("dp: &dp 16\nop: *dp\n", {{"op", std::int64_t{4}}}) == "dp: &dp 16\nop: 4\n");
  CHECK(changed("dp: &dp 16\nop: *dp\n", {{"dp", std::int64_t{8}}, {"op", std::int64_t{8}}}) == "dp: &dp 8\nop: *dp\n");
  CHECK(changed("dp: &dp 16\nop: *dp\n", {{"dp", std::int64_t{8}}, {"op", std::int64_t{16}}}) == "dp: &dp 8\nop: 16\n");
  CHECK(changed("base: &b {x: 1}\na:\n  <<: *b\n  y: 1\n", {{"a.z", kTwo}}) == "base: &b {x: 1}\na:\n  <<: *b\n  y: 1\n  z: 2\n");
  // The value stands in the shared mapping: changing it there would change both.
  CHECK(changed("base: &b {x: 1}\na:\n  <<: *b\n", {{"a.x", kTwo}}).find("error") == 0);
  CHECK(changed("base: &b {x: 1}\na: *b\n", {{"a.x", kTwo}}).find("error: f: a.x: cannot be written: stands in a section that is shared by an anchor") == 0);
}

TEST_CASE("YAML: keys and sections go", "[write]") {
  CHECK(removed("a:\n  b: 1\n  c:\n    d: 2 # deep\n  e: 3\n", {"a.c"}) == "a:\n  b: 1\n  e: 3\n");
  CHECK(removed("a: {b: 1, c: 2, d: 3}\n", {"a.c"}) == "a: {b: 1, d: 3}\n");
  CHECK(removed("a: {b: 1, c: 2}\n", {"a.c"}) == "a: {b: 1}\n");
  CHECK(removed("a: {b: 1}\n", {"a.b", "x.y"}) == "a: {}\n");
  CHECK(removed("a: 1\nb:\n- 1\n- 2\nc: 3", {"b"}) == "a: 1\nc: 3");
  auto editor = ConfigEditor::open("a: 1\n\nctx:\n  n: 2 # two\n  m: 3\nb: 1\n", "f", Syntax::yaml);
  REQUIRE(editor);
  editor->comment_out("ctx", "not read:");
  CHECK(editor->finish().value() == "a: 1\n\n# not read:\n# ctx:\n#   n: 2 # two\n#   m: 3\nb: 1\n");
}

TEST_CASE("JSON: values, keys and sections", "[write]") {
  const std::string text = "{\n  \"a\": 1,\n  \"b\": {\"c\": \"x, y\", \"d\": [1, 2]},\n  \"e\": \"auto\"\n}\n";
  CHECK(changed(text, {{"a", kTwo}, {"b.d", std::vector<std::int64_t>{3}}, {"e", std::int64_t{4}}}, Syntax::json) ==
        "{\n  \"a\": 2,\n  \"b\": {\"c\": \"x, y\", \"d\": [3]},\n  \"e\": 4\n}\n");
  CHECK(changed(text, {{"b.z", true}, {"n", std::string("w")}}, Syntax::json) ==
        "{\n  \"a\": 1,\n  \"b\": {\"c\": \"x, y\", \"d\": [1, 2], \"z\": true},\n  \"e\": \"auto\",\n  \"n\": \"w\"\n}\n");
  CHECK(changed("{}", {{"a.b", kTwo}}, Syntax::json) == "{\"a\": {\"b\": 2}}");
  CHECK(changed("{\"a\": null}", {{"a", kTwo}}, Syntax::json) == "{\"a\": 2}");
  CHECK(removed(text, {"a", "b.d"}, Syntax::json) == "{\n  \"b\": {\"c\": \"x, y\"},\n  \"e\": \"auto\"\n}\n");
}

TEST_CASE("TOML: values, keys and tables", "[write]") {
  const std::string text = "# top\n[job]\nname = \"x\" # is\n\n[train]\n  lr = 1e-5\n  size = 1_000 # big\n\n[last]\n";
  CHECK(changed(text, {{"train.size", kTwo}, {"job.name", std::string("y")}}, Syntax::toml) ==
        "# top\n[job]\nname = \"y\" # is\n\n[train]\n  lr = 1e-5\n  size = 2 # big\n\n[last]\n");
  CHECK(changed(text, {{"train.n", kTwo}, {"last.m", true}, {"new.x", kTwo}}, Syntax::toml) ==
        "# top\n[job]\nname = \"x\" # is\n\n[train]\n  lr = 1e-5\n  size = 1_000 # big\n  n = 2\n\n[last]\nm = true\n\n[new]\nx = 2\n");
  CHECK(changed("a.b = 1\n", {{"a.c", kTwo}}, Syntax::toml) == "a.b = 1\na.c = 2\n");
  CHECK(changed("a = {b = 1}\n", {{"a.c", kTwo}}, Syntax::toml) == "a = {b = 1, c = 2}\n");
  CHECK(changed("[a]\n[a.b]\nx = 1\n", {{"a.y", kTwo}}, Syntax::toml) == "[a]\ny = 2\n[a.b]\nx = 1\n");
  CHECK(changed("[a]\nx = 1", {{"top", kTwo}, {"a.y", kTwo}}, Syntax::toml) == "top = 2\n[a]\nx = 1\ny = 2");
  CHECK(removed("[a]\nx = 1 # one\ny = [1,\n 2]\nz = 3\n", {"a.x", "a.y"}, Syntax::toml) == "[a]\nz = 3\n");
  CHECK(changed("[a]\nx = [\n  1, # one\n  2,\n]\ny = 1\n", {{"a.x", std::vector<std::int64_t>{3}}, {"a.z", kTwo}}, Syntax::toml) ==
        "[a]\nx = [3]\ny = 1\nz = 2\n");
}

TEST_CASE("an edit that cannot be made is refused, not half made", "[write]") {
  CHECK(changed("a: 1\n", {{"a.b", kTwo}}).find("error: f: a.b: cannot be written: has no place in 'a'") == 0);
  CHECK_FALSE(ConfigEditor::open("- a: 1\n", "f", Syntax::yaml));
  CHECK_FALSE(ConfigEditor::open("{", "f", Syntax::json));
}
