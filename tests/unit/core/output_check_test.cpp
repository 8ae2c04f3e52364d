// SPDX-License-Identifier: Apache-2.0
#include "nd/output_check.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/file.hpp"

namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path root = fs::temp_directory_path() / ("nd_output_check_" + std::to_string(getpid()));
  Folder() {
    fs::remove_all(root);
    fs::create_directories(root / "sub");
    std::ofstream(root / "in.yaml") << "a: 1\n";
    fs::create_symlink(root / "in.yaml", root / "link.yaml");
    fs::create_hard_link(root / "in.yaml", root / "hard.yaml");
  }
  ~Folder() { fs::remove_all(root); }
  [[nodiscard]] std::string operator()(const char* name) const { return (root / name).string(); }
};

}  // namespace

TEST_CASE("an output that is an input is refused under every name it has", "[output]") {
  const Folder at;
  for (const char* name : {"in.yaml", "link.yaml", "hard.yaml", "sub/../in.yaml"}) {
    const auto problems = nd::check_outputs({{"-y", at("in.yaml")}}, {{"--json", at(name)}});
    INFO(name);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].code == nd::Errc::conflict);
    CHECK(problems[0].where.path == "--json");
  }
  CHECK(nd::check_outputs({{"-y", at("in.yaml")}}, {{"--json", at("out.json")}}).empty());
}

TEST_CASE("two outputs under one name are refused, whether the file exists or not", "[output]") {
  const Folder at;
  CHECK(nd::check_outputs({}, {{"--json", at("new")}, {"--ranking_csv", at("sub/../new")}}).size() == 1);
  CHECK(nd::check_outputs({}, {{"--json", at("new")}, {"--ranking_csv", at("other")}}).empty());
  CHECK(nd::check_outputs({}, {{"--json", "-"}, {"--ranking_csv", "-"}}).empty());
  CHECK(nd::check_outputs({}, {{"--json", "/dev/null"}, {"--ranking_csv", "/dev/null"}}).empty());
}

TEST_CASE("an unfinished file leaves nothing, a finished one replaces the old", "[output]") {
  const Folder at;
  const auto files = [&] { return std::distance(fs::directory_iterator(at.root), fs::directory_iterator{}); };
  const auto before = files();
  {
    nd::core::AtomicFile file(at("in.yaml"));
    file.write(std::string(1 << 20, 'x'));  // past the buffer: on the disk already
  }
  CHECK(files() == before);
  CHECK(fs::file_size(at.root / "in.yaml") == 5);
  CHECK_FALSE(nd::core::write_file(at("in.yaml"), "new"));
  CHECK(files() == before);
  CHECK(fs::file_size(at.root / "in.yaml") == 3);
  CHECK(fs::status(at.root / "in.yaml").permissions() != fs::perms::none);
}
