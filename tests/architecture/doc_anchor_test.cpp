// SPDX-License-Identifier: Apache-2.0
// Every page and anchor that a source names exists.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_anchor(const std::string& page, const std::string& anchor) {
  return page.find("<a id=\"" + anchor + "\">") != std::string::npos || page.find("{#" + anchor + "}") != std::string::npos;
}

}  // namespace

TEST_CASE("pages and anchors named in sources exist", "[architecture]") {
  static const std::regex kReference(R"((docs/[a-z_/]+\.md)(?:#([a-z0-9_-]+))?)");
  const fs::path root = ND_TEST_SOURCE_DIR;
  int seen = 0;
  for (const char* folder : {"include", "libnd", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") continue;
      const std::string text = content(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), kReference), end; it != end; ++it, ++seen) {
        INFO(entry.path() << " names " << it->str());
        REQUIRE(fs::exists(root / (*it)[1].str()));
        if ((*it)[2].matched) CHECK(has_anchor(content(root / (*it)[1].str()), (*it)[2].str()));
      }
    }
  REQUIRE(seen > 20);
}
