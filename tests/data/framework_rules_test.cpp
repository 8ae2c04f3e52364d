// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <string>

#include "data_support.hpp"
#include "formats/readers/framework.hpp"

namespace {

/// A whole framework file, small enough to see what is wrong in the edited copies.
constexpr const char* kFile = R"(schema: nd/framework/1
name: toy
title: Toy
aliases: []
capabilities:
  max_zero: {value: 1, kind: datasheet, source: [docs]}
  style: {value: fsdp, kind: datasheet, source: [docs]}
defaults:
  memory:
    logit_bytes: {value: 6, kind: fitted, source: [docs]}
    dispatcher: {value: all_to_all, kind: assumed, source: [docs]}
    flash_attention: {value: true, kind: assumed, source: [docs]}
  time:
    attention_kernel: {value: flash2, kind: assumed, source: [docs]}
versions:
  - version: "1.0"
  - version: "1.2"
    aliases: [stable]
    memory:
      logit_bytes: {value: 10, kind: fitted, source: [docs], note: "one more copy"}
    features:
      fused:
        title: fused loss of 1.2
        memory:
          logit_bytes: {value: 2, kind: fitted, source: [docs]}
features:
  fused:
    title: fused loss
    memory:
      logit_bytes: {value: 4, kind: fitted, source: [docs]}
sources:
  docs: {citation: "the manual", date: "2026-01-01"}
)";

std::string read_edited(std::string_view old_text, std::string_view new_text) {
  std::string text = kFile;
  const auto at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  text.replace(at, old_text.size(), new_text);
  const auto root = nd::formats::parse_yaml(text, "toy.yaml");
  REQUIRE(root.has_value());
  return nd::test::problems(nd::formats::FrameworkFile::read(*root));
}

}  // namespace

TEST_CASE("a framework file gives defaults, versions and features with their sources") {
  const auto root = nd::formats::parse_yaml(kFile, "toy.yaml");
  REQUIRE(root.has_value());
  const auto file = nd::formats::FrameworkFile::read(*root);
  INFO(nd::test::problems(file));
  REQUIRE(file.has_value());
  const auto logit = [&](std::string_view version, const std::vector<std::string>& features) {
    return file->profile(version, features).value().memory.logit_bytes;
  };
  CHECK(logit("1.0", {}) == 6);
  CHECK(logit("1.0", {"fused"}) == 4);
  CHECK(logit("1.2", {}) == 10);
  CHECK(logit("1.2", {"fused"}) == 2);
  CHECK(logit("", {}) == 10);
  CHECK(logit("stable", {}) == 10);
  CHECK(logit("1.1", {}) == 6);
  const auto newest = file->profile("", {}).value();
  CHECK(newest.version == "1.2");
  CHECK(newest.can.max_zero == 1);
  CHECK(newest.can.style == nd::DataParallelStyle::fsdp);
  CHECK(newest.sources.at("memory.logit_bytes") == nd::FigureSource{nd::FigureKind::fitted, "the manual", "one more copy"});
}

TEST_CASE("a corrupt framework file is refused with the place and the reason") {
  const struct {
    const char* old_text;
    const char* new_text;
    const char* expected;
  } all[] = {
      {"logit_bytes: {value: 6", "logit_byte: {value: 6", "toy.yaml:10:17: defaults.memory.logit_byte: unknown key 'logit_byte' (did you mean 'logit_bytes'?)"},
      {"{value: 6, kind: fitted, source: [docs]}", "6", "toy.yaml:10:18: defaults.memory.logit_bytes: must be a figure"},
      {"{value: 6, kind: fitted, source: [docs]}", "{value: 6, kind: fitted}", "source"},
      {"{value: 6, kind: fitted, source: [docs]}", "{value: 6, kind: fitted, source: [doc]}", "'doc' is not a key of 'sources'"},
      {"{value: 6,", "{value: many,", "toy.yaml:10:26: defaults.memory.logit_bytes.value: 'many' cannot be read (a number that is not negative)"},
      {"{value: 6,", "{value: -6,", "'-6' cannot be read"},
      {"value: all_to_all", "value: all2all", "'all2all' cannot be read (known: all_gather, all_to_all, deduplicating)"},
      {"{value: true, kind", "{value: 3, kind", "'3' cannot be read (true or false)"},
      {"value: 1, kind: datasheet", "value: one, kind: datasheet", "'one' cannot be read (a whole number that is not negative)"},
      {"value: fsdp", "value: fsdp9", "'fsdp9' cannot be read (did you mean 'fsdp'?)"},
      {"  - version: \"1.0\"", "  - version: \"1.2\"", "version '1.2' is listed twice"},
      {"aliases: [stable]", "aliases: [\"1.0\"]", "version '1.0' is listed twice"},
      {"      fused:\n", "      fussed:\n", "'fussed' is no feature of this file (did you mean 'fused'?)"},
      {"schema: nd/framework/1", "schema: nd/device/1", "schema 'nd/device/1' is not readable here"},
      {"    title: fused loss\n", "", "title"},
      {"title: Toy\n", "titel: Toy\n", "'titel'"},
      {"  memory:\n    logit_bytes: {value: 6", "  memori:\n    logit_bytes: {value: 6", "'memori'"},
      {"citation:", "quotation:", "citation"},
  };
  for (const auto& c : all) {
    const std::string text = read_edited(c.old_text, c.new_text);
    INFO(c.old_text << " -> " << c.new_text << "\n" << text);
    CHECK(text.find(c.expected) != std::string::npos);
    CHECK(text.find("toy.yaml:") != std::string::npos);
  }
}

TEST_CASE("version names are ordered by number, release candidates before the release") {
  using nd::formats::compare_versions;
  CHECK(compare_versions("1.9", "1.10") == -1);
  CHECK(compare_versions("1.0.RC1", "1.0.0") == -1);
  CHECK(compare_versions("1.0.RC1", "1.0.RC2") == -1);
  CHECK(compare_versions("1.0", "1.0.0") == 0);
  CHECK(compare_versions("1.0.1", "1.0") == 1);
  CHECK(compare_versions("r1.6", "1.5") == 1);
  CHECK(compare_versions("v2.0", "2.0") == 0);
  CHECK(compare_versions("bridge-26.05", "bridge-25.05") == 1);
  CHECK(compare_versions("bridge-26.05", "0.8") == 2);
  CHECK(compare_versions("", "0.8") == 2);
}
