// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <string>

#include "data_support.hpp"
#include "formats/figure.hpp"

namespace {

using nd::formats::FieldRule;
using enum nd::formats::FieldType;

constexpr FieldRule kRules[] = {
    {"size", bytes, true}, {"cost", seconds_per_byte}, {"parts.#.name", text, true}, {"parts.#.rate", rate, true}, {"map.*", fraction}, {"big.inner", count, true},
};

struct Read {
  nd::formats::FieldMap map;
  std::string problems;
};
Read read(const std::string& text) {
  const auto root = nd::formats::parse_yaml(text + "\nsources: {a: {citation: first}, b: {citation: second}}\n", "x.yaml");
  REQUIRE(root.has_value());
  std::vector<nd::Diagnostic> sink;
  Read out;
  out.map = nd::formats::read_fields(*root, kRules, sink);
  for (const auto& one : sink) out.problems += to_text(one) + "\n";
  return out;
}

}  // namespace

TEST_CASE("figures of every shape are read into base units with their provenance") {
  const Read r = read(
      "size: {value: \"2 GiB\", kind: measured, source: [a, b], note: why}\n"
      "cost: {value: \"1 ms/GiB\", kind: assumed, source: [a]}\n"
      "parts:\n  - {name: p, rate: {value: \"3 TFLOP/s\", kind: datasheet, source: [b]}}\n"
      "map: {x: {value: 0.5, kind: fitted, source: [a]}}\n"
      "big: {inner: {value: 7, kind: assumed, source: [a]}}");
  CHECK(r.problems.empty());
  CHECK(r.map.number("size") == Approx(2 * nd::kGiB));
  CHECK(r.map.number("cost") == Approx(1e-3 / nd::kGiB));
  CHECK(r.map.number("parts.p.rate") == Approx(3e12));
  CHECK(r.map.number("map.x") == Approx(0.5));
  CHECK(r.map.number("big.inner") == 7);
  CHECK(r.map.number("absent", 9) == 9);
  CHECK(r.map.lists.at("parts") == std::vector<std::string>{"p"});
  REQUIRE(r.map.find("size") != nullptr);
  CHECK(r.map.find("size")->source == nd::FigureSource{nd::FigureKind::measured, "first; second", "why"});
}

TEST_CASE("required fields, list names and fractions are checked") {
  CHECK(read("big: {inner: {value: 7, kind: assumed, source: [a]}}").problems.find("'size' is missing") != std::string::npos);
  const std::string size = "size: {value: \"2 GiB\", kind: measured, source: [a]}\n";
  CHECK(read(size).problems.find("'big.inner' is missing") != std::string::npos);
  CHECK(read(size + "big: {}").problems.find("'inner' is missing") != std::string::npos);
  CHECK(read(size + "big: {inner: {value: 1.5, kind: assumed, source: [a]}}").problems.find("must be a whole number") != std::string::npos);
  CHECK(read(size + "parts: [{rate: 3}]").problems.find("every element needs a 'name'") != std::string::npos);
  CHECK(read(size + "parts: [{name: p}]").problems.find("'rate' is missing") != std::string::npos);
  CHECK(read(size + "map: {x: {value: 0, kind: fitted, source: [a]}}").problems.find("above 0 and up to 1.5") != std::string::npos);
  const std::string twice = "parts: [{name: p, rate: {value: \"3 TFLOP/s\", kind: datasheet, source: [b]}}, {name: p}]";
  CHECK(read(size + twice).problems.find("'p' is named twice") != std::string::npos);
}
