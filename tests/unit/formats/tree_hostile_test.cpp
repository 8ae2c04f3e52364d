// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>

#include "tree_support.hpp"

using namespace nd::formats;

namespace {

using Parser = nd::Result<ConfigNode> (*)(std::string_view, const std::string&, const ParseLimits&);

std::string repeat(std::string_view part, std::size_t times) {
  std::string out;
  out.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out;
}

/// Refused with `code`, and without eating the machine. The bound is a hang detector, not a benchmark.
void check_refused(Parser parse, const std::string& text, nd::Errc code) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = parse(text, "f", {});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  REQUIRE_FALSE(result);
  CHECK(to_text(result.error().code()) == std::string(to_text(code)));
  CHECK(elapsed.count() < 20.0);
}

void check_every_truncation(Parser parse, const std::string& text) {
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto result = parse(std::string_view(text).substr(0, length), "f", {});
    if (!result) CHECK_FALSE(result.error().diagnostics.empty());
  }
}

}  // namespace

TEST_CASE("deep nesting is refused", "[hostile]") {
  constexpr std::size_t kDeep = 100'000;
  check_refused(parse_yaml, repeat("[", kDeep), nd::Errc::out_of_range);
  check_refused(parse_yaml, repeat("[", kDeep) + repeat("]", kDeep), nd::Errc::out_of_range);
  check_refused(parse_yaml, repeat("{a: ", kDeep), nd::Errc::out_of_range);
  check_refused(parse_yaml, "a: " + repeat("- ", kDeep) + "x", nd::Errc::syntax);
  check_refused(parse_yaml, repeat("- ", kDeep) + "x", nd::Errc::out_of_range);
  check_refused(parse_yaml, repeat("? ", kDeep) + "x", nd::Errc::syntax);
  check_refused(parse_json, repeat("[", kDeep), nd::Errc::out_of_range);
  check_refused(parse_json, repeat("{\"a\":", kDeep), nd::Errc::out_of_range);
  std::string indented;
  for (std::size_t i = 0; i < 600; ++i) indented += std::string(i, ' ') + "a:\n";
  check_refused(parse_yaml, indented, nd::Errc::out_of_range);
}

TEST_CASE("deep nesting is refused in TOML", "[hostile]") {
  constexpr std::size_t kDeep = 100'000;
  check_refused(parse_toml, "a = " + repeat("[", kDeep), nd::Errc::out_of_range);
  check_refused(parse_toml, "a = " + repeat("{a=", kDeep), nd::Errc::out_of_range);
  check_refused(parse_toml, repeat("a.", kDeep) + "b = 1\n", nd::Errc::out_of_range);
  check_refused(parse_toml, repeat("'a' . ", kDeep) + "b = 1\n", nd::Errc::out_of_range);
  check_refused(parse_toml, "[" + repeat("a.", kDeep) + "b]\n", nd::Errc::out_of_range);
  check_refused(parse_toml, "x = {" + repeat("a.", kDeep) + "b = 1}\n", nd::Errc::out_of_range);
  // Dots and brackets of strings and comments nest nothing.
  CHECK(outcome(parse_toml("a = \"" + repeat("[.\\\"", 1000) + "\"\nb = '''\n" + repeat("[.", 1000) + "'''  # " + repeat("[.", 1000) + "\n", "f")) == "ok");
}

TEST_CASE("depth up to the limit is read", "[hostile]") {
  CHECK(outcome(parse_yaml(repeat("[", 128) + repeat("]", 128), "f")) == "ok");
  CHECK(outcome(parse_yaml(repeat("[", 129) + repeat("]", 129), "f")) == "1:129 out_of_range");
  CHECK(outcome(parse_json(repeat("[", 128) + repeat("]", 128), "f")) == "ok");
  CHECK(outcome(parse_json(repeat("[", 129) + repeat("]", 129), "f")) == "1:129 out_of_range");
  CHECK(outcome(parse_yaml("note: \"" + repeat("[", 1000) + "\"\n", "f")) == "ok");
}

TEST_CASE("alias bombs are refused", "[hostile]") {
  // Nine levels of nine references each: 9^9 = 387 million values from 500 bytes.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 9; ++level) {
    const std::string name = "a" + std::to_string(level), before = "*a" + std::to_string(level - 1);
    bomb += name + ": &" + name + " [" + before;
    for (int i = 1; i < 9; ++i) bomb += ", " + before;
    bomb += "]\n";
  }
  check_refused(parse_yaml, bomb, nd::Errc::out_of_range);
  // Few values, much text: a 1 MB text 5000 times.
  check_refused(parse_yaml, "a: &a " + repeat("x", 1'000'000) + "\nb: [*a" + repeat(", *a", 5000) + "]\n", nd::Errc::out_of_range);
  // Merge keys multiply as well.
  std::string merges = "m0: &m0 {k: v}\n";
  for (int level = 1; level < 40; ++level) {
    const std::string before = std::to_string(level - 1);
    merges += "m" + std::to_string(level) + ": &m" + std::to_string(level) + " {a: *m" + before + ", b: *m" + before + "}\n";
  }
  check_refused(parse_yaml, merges, nd::Errc::out_of_range);
  // A long key over many children: the paths would take 100 GB.
  check_refused(parse_json, "{\"" + repeat("k", 1'000'000) + "\": [0" + repeat(",0", 100'000) + "]}", nd::Errc::out_of_range);
}

TEST_CASE("long lines and many values are read", "[hostile]") {
  constexpr std::size_t kTenMegabytes = 10'000'000;
  CHECK(outcome(parse_yaml("a: " + repeat("x", kTenMegabytes) + "\n", "f")) == "ok");
  CHECK(outcome(parse_json("{\"a\": \"" + repeat("x", kTenMegabytes) + "\"}", "f")) == "ok");
  CHECK(outcome(parse_toml("a = \"" + repeat("x", kTenMegabytes) + "\"", "f")) == "ok");
  CHECK(outcome(parse_json("[1" + repeat(",1", 400'000) + "]", "f")) == "ok");
  CHECK(outcome(parse_json("[1" + repeat(",1", 500'000) + "]", "f")).find("out_of_range") != std::string::npos);
  CHECK(outcome(parse_yaml("[1" + repeat(", 1", 100'000) + "]", "f")) == "ok");
}

TEST_CASE("a document cut anywhere gives a value or a reason", "[hostile]") {
  check_every_truncation(parse_yaml, "# c\na: &x {b: [1, 'two', \"th\\u00e9\"], <<: {c: 3}}\nd: *x\ne: |\n  text\n? f\n: - g\n  - !!str h\n...\n");
  check_every_truncation(parse_json, "{\"a\": [1, -2.5e+3, \"th\\u00e9\", true, null], \"b\": {\"c\": \"\xC3\xA9\"}}");
  check_every_truncation(parse_toml, "a = 1\n[b.c]\nd = [1.5, \"x\"]\ne = {f = 'g', h = \"\"\"\nlong\"\"\"}\n[[i]]\nj = 2024-01-02T03:04:05Z\n");
}

TEST_CASE("any byte in any place gives a value or a reason", "[hostile]") {
  const std::string text = "a: &x {b: [1, 'two']}\nd: *x\ne: |\n  t\n? f\n: - g\n";
  for (std::size_t place = 0; place < text.size(); ++place) {
    for (int byte = 1; byte < 256; byte += 3) {
      std::string changed = text;
      changed[place] = static_cast<char>(byte);
      const auto result = parse_yaml(changed, "f");
      if (!result) CHECK_FALSE(result.error().diagnostics.empty());
      CHECK((parse_json(changed, "f") || true));
      CHECK((parse_toml(changed, "f") || true));
    }
  }
}
