// SPDX-License-Identifier: Apache-2.0
// Reads every #include of the library and compares it with the table of docs/architecture.md.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

/// What a module may include besides itself; transitive, so "ops" brings its own row with it.
const std::map<std::string, Names> kMayInclude{
    {"core", {}},
    {"model", {"core"}},
    {"device", {"core"}},
    {"run", {"core", "model", "device"}},
    {"ops", {"core", "model", "device", "run"}},
    {"layout", {"core", "model", "device", "run", "ops"}},
    {"memory", {"core", "model", "device", "run", "ops", "layout"}},
    {"perf", {"core", "model", "device", "run", "ops", "layout"}},
    {"calibration", {"core", "model", "device", "run", "ops", "layout", "perf"}},
    {"space", {"core", "model", "device", "run", "ops", "layout"}},
    {"plan", {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration"}},
    {"search", {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration", "space", "plan"}},
    {"study", {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration", "space", "plan", "search"}},
    {"formats", {"core", "model", "device", "run", "ops", "layout", "perf", "calibration", "space", "plan"}},
    {"report",
     {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration", "space", "plan", "search", "study", "formats"}},
    {"measured", {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration", "space", "plan", "search", "study", "formats", "report"}},
    {"verify", {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration", "space", "plan", "search", "study", "formats", "report"}},
    {"harness", {"core", "model", "device", "run", "ops", "layout", "memory", "perf", "calibration", "space", "plan", "search", "formats"}},
    {"traces", {"core", "model", "device", "run", "ops", "layout", "perf", "calibration", "space", "plan", "formats"}},
};

/// Which module a public header belongs to.
const std::map<std::string, std::string> kPublicHeader{
    {"units", "core"},        {"result", "core"},          {"diagnostic", "core"},   {"version", "core"}, {"output_check", "core"},      {"model_spec", "model"},
    {"device", "device"},     {"parallel_config", "run"},  {"run_spec", "run"},      {"framework_profile", "run"}, {"ops", "ops"},
    {"scenario", "layout"},   {"schedule", "layout"},     {"memory", "memory"},        {"perf", "perf"},         {"calibration", "calibration"},
    {"search_space", "space"}, {"search", "search"},       {"study", "study"},       {"plan", "plan"}, {"balance", "plan"}, {"balance_report", "report"}, {"potentials", "plan"}, {"potentials_report", "report"}, {"data_store", "formats"}, {"formats", "formats"},   {"resolved", "formats"}, {"report", "report"},
    {"validation", "report"}, {"fit", "report"}, {"ratios", "calibration"}, {"fingerprint", "measured"}, {"compare", "measured"}, {"verify", "verify"}, {"classify", "traces"}, {"campaign", "harness"}, {"bench", "harness"}, {"nd", "harness"},
};

/// Third-party headers and the modules whose .cpp files may use them.
const std::vector<std::pair<std::string, Names>> kThirdParty{
    {"fmt/", {"*"}},
    {"Eigen/", {"calibration"}},
    {"unsupported/Eigen/", {"calibration"}},
    {"yaml-cpp/", {"formats"}},
    {"nlohmann/", {"formats", "report", "measured", "verify", "traces", "harness"}},
    {"toml++/", {"formats"}},
    {"csv.h", {"formats"}},
    {"zlib.h", {"traces"}},
    {"sqlite3.h", {"traces", "harness"}},
    {"tbb/", {"search"}},
    {"oneapi/tbb", {"search"}},
};

struct Include {
  fs::path file;
  std::string module, target;
  bool angled = false;
};

std::vector<Include> includes_under(const fs::path& root) {
  static const std::regex kLine(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp") continue;
    const auto relative = fs::relative(entry.path(), root);
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (std::regex_search(line, match, kLine)) out.push_back({relative, relative.begin()->string(), match[2], match[1] == "<"});
    }
  }
  return out;
}

const fs::path kRoot = ND_TEST_SOURCE_DIR;

}  // namespace

TEST_CASE("modules include only what the table allows", "[architecture]") {
  const auto all = includes_under(kRoot / "libnd");
  REQUIRE(all.size() > 50);
  for (const auto& include : all) {
    if (include.angled) continue;
    std::string target;
    if (include.target.rfind("nd/", 0) == 0) {
      const auto found = kPublicHeader.find(fs::path(include.target).stem().string());
      INFO(include.file << " includes " << include.target << ", a public header without a module");
      REQUIRE(found != kPublicHeader.end());
      target = found->second;
    } else {
      target = include.target.substr(0, include.target.find('/'));
    }
    INFO(include.file << " includes " << include.target);
    REQUIRE(kMayInclude.count(include.module) == 1);
    const bool allowed = target == include.module || kMayInclude.at(include.module).count(target) == 1;
    CHECK(allowed);
  }
}

TEST_CASE("third-party headers stay in the sources of the modules that own them", "[architecture]") {
  for (const auto& include : includes_under(kRoot / "libnd"))
    for (const auto& [prefix, owners] : kThirdParty) {
      if (include.target.rfind(prefix, 0) != 0) continue;
      INFO(include.file << " includes " << include.target);
      CHECK((owners.count("*") == 1 || owners.count(include.module) == 1));
      // Forward declarations let the parts of one document live in several sources of the module.
      CHECK((include.file.extension() == ".cpp" || include.target == "nlohmann/json_fwd.hpp"));
    }
}

TEST_CASE("public headers include only the standard library and each other", "[architecture]") {
  for (const auto& include : includes_under(kRoot / "include")) {
    INFO(include.file << " includes " << include.target);
    CHECK((include.angled ? include.target.find('/') == std::string::npos && include.target.find('.') == std::string::npos
                          : include.target.rfind("nd/", 0) == 0));
  }
}

TEST_CASE("programs use public headers only", "[architecture]") {
  for (const auto& include : includes_under(kRoot / "apps")) {
    if (include.angled) continue;
    INFO(include.file << " includes " << include.target);
    // Its own folder, or the public headers.
    CHECK((include.target.rfind("nd/", 0) == 0 || include.target.find('/') == std::string::npos));
  }
}

TEST_CASE("the library neither prints, exits nor reads the environment", "[architecture]") {
  static const std::regex kForbidden(R"(\bstd::c(out|err|log)\b|\b(printf|puts|exit|abort|getenv|_exit|quick_exit)\s*\(|\bfmt::print\b)");
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "libnd")) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp") continue;
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const auto code = line.substr(0, line.find("//"));
      INFO(entry.path() << ":" << number << ": " << line);
      CHECK_FALSE(std::regex_search(code, kForbidden));
    }
  }
}

TEST_CASE("every source says its licence", "[architecture]") {
  for (const char* folder : {"libnd", "include", "apps", "tests", "benchmarks"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp") continue;
      std::ifstream in(entry.path());
      std::string first;
      std::getline(in, first);
      INFO(entry.path());
      CHECK(first == "// SPDX-License-Identifier: Apache-2.0");
    }
}
