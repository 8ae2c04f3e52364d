// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/tree/map_reader.hpp"

using namespace nd::formats;

TEST_CASE("a mapping is read field by field and all problems are collected", "[map_reader]") {
  const auto root = parse_yaml(
      "hidden: 4096\nlayers: 0\nrate: 1e-5\nflag: on\nname: llama\nlist: [1, 2, x]\nwords: [a, b]\nhuge: 99999999999999\nbad: [1]\n"
      "nothing: ~\nhiden: 1\nversion: 2.4\n",
      "f.yaml");
  REQUIRE(root);
  std::vector<nd::Diagnostic> sink;
  MapReader reader(*root, sink);
  CHECK(reader.positive("hidden") == std::optional<std::int64_t>(4096));
  CHECK(reader.real("rate") == std::optional<double>(1e-5));
  CHECK(reader.boolean("flag") == std::optional<bool>(true));
  CHECK(reader.string("name") == std::optional<std::string>("llama"));
  CHECK(reader.strings("words") == std::optional<std::vector<std::string>>({"a", "b"}));
  CHECK_FALSE(reader.integer("nothing"));
  CHECK_FALSE(reader.integer("absent"));
  CHECK_FALSE(reader.has("nothing"));
  CHECK(reader.child("nothing") == nullptr);
  CHECK(sink.empty());

  CHECK_FALSE(reader.positive("layers"));
  CHECK_FALSE(reader.positive("huge"));
  CHECK_FALSE(reader.integers("list"));
  CHECK_FALSE(reader.integer("bad"));
  CHECK_FALSE(reader.string("version"));
  reader.require("vocab", "the table's width depends on it");
  reader.ignore({"never_there"});
  reader.finish();
  std::vector<std::string> texts;
  for (const auto& diagnostic : sink) texts.push_back(to_text(diagnostic));
  CHECK(texts == std::vector<std::string>{
                     "error: f.yaml:2:9: layers: must be at least 1, is 0",
                     "error: f.yaml:8:7: huge: is too large: 99999999999999",
                     "error: f.yaml:6:14: list[2]: must be an integer, is 'x' (a string)",
                     "error: f.yaml:9:6: bad: must be an integer, is a list",
                     "error: f.yaml:12:10: version: must be a string, is '2.4' (a real number) (quote it)",
                     "error: f.yaml:1:1: vocab: 'vocab' is required: the table's width depends on it",
                     "error: f.yaml:11:1: hiden: unknown key 'hiden' (did you mean 'hidden'?)",
                 });
}

TEST_CASE("what is no mapping reads as empty and is reported once", "[map_reader]") {
  const auto root = parse_yaml("- a\n- list\n", "f.yaml");
  std::vector<nd::Diagnostic> sink;
  MapReader reader(*root, sink);
  CHECK_FALSE(reader.string("name"));
  reader.require("name", "");
  reader.finish();
  REQUIRE(sink.size() == 1);
  CHECK(to_text(sink[0]) == "error: f.yaml:1:1: the top level must be a mapping, is a list");
}
