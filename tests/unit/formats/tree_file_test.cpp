// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tree_support.hpp"

using namespace nd::formats;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / ("nd_tree_test_" + std::to_string(::getpid()))) { fs::create_directories(path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  fs::path path_;
};

std::string message(const nd::Result<ConfigNode>& result) { return result ? "ok" : result.error().diagnostics.front().message; }

}  // namespace

TEST_CASE("files that cannot be read say why", "[file]") {
  const TemporaryFolder folder;
  CHECK(message(read_document(folder.path("missing.yaml"))) == "no such file");
  CHECK(message(read_document(folder.path("."))) == "is a folder, not a file");
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK(message(read_document(folder.path("pipe"))) == "is not a regular file");
  CHECK(read_document(folder.path("missing.yaml")).error().code() == nd::Errc::io);
  const auto small = read_document(folder.file("large.yaml", "a: 12345\n"), {.max_bytes = 4});
  CHECK(message(small) == "has 9 bytes, more than the 4 that are read");
  CHECK(small.error().code() == nd::Errc::out_of_range);
}

TEST_CASE("what is no text is refused with a position", "[file]") {
  const TemporaryFolder folder;
  CHECK(outcome(read_document(folder.file("a.yaml", std::string("a: 1\nb: \0x\n", 11)))) == "2:4 syntax");
  CHECK(outcome(read_document(folder.file("b.yaml", "a: \xFF\n"))) == "1:4 syntax");
  CHECK(outcome(read_document(folder.file("c.yaml", "a: \xC3"))) == "1:4 syntax");
  CHECK(outcome(read_document(folder.file("d.yaml", "a: \xED\xA0\x80\n"))) == "1:4 syntax");
  CHECK(outcome(read_document(folder.file("e.json", "{\"\xC3\xA9\": \x01}"))) == "1:7 syntax");
  CHECK(message(read_document(folder.file("f.yaml", "\xFF\xFE" "a"))) == "the file is UTF-16, not UTF-8");
  CHECK(message(read_document(folder.file("g.yaml", "a: \x04\n"))) == "a control character (byte 4)");
  CHECK(message(read_document(folder.file("h.toml", ""))) == "the file is empty");
  CHECK(message(read_document(folder.file("i.yaml", "\xEF\xBB\xBF"))) == "the file is empty");
}

TEST_CASE("the suffix decides, else the content", "[file]") {
  const TemporaryFolder folder;
  for (const char* name : {"a.yaml", "a.YML", "plain"}) {
    INFO(name);
    CHECK(outcome(read_document(folder.file(name, "a: {b: 1}\n"))) == "ok");
  }
  CHECK(outcome(read_document(folder.file("b.json", "{\"a\": 1}"))) == "ok");
  CHECK(outcome(read_document(folder.file("c.toml", "[a]\nb = 1\n"))) == "ok");
  CHECK(outcome(read_document(folder.file("d.json", "a: 1\n"))) == "1:1 syntax");
  CHECK(read_document(folder.file("toml_inside", "[a]\nb = 1\n"))->find("a") != nullptr);
  CHECK(read_document(folder.file("json_inside", "{\"a\": 1e5}"))->find("a")->text == "1.0e+05");
  CHECK(outcome(read_document(folder.file("flow", "{a: 1}\n"))) == "ok");
  CHECK(read_document(folder.file("list", "- a\n"))->is_sequence());
}
