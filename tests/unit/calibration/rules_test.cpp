// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "formats/readers/measured.hpp"
#include "nd/data_store.hpp"
#include "report/validation_mapping.hpp"
#include "report/validation_rules.hpp"

namespace {

namespace fs = std::filesystem;

/// A data folder of this test with the three files of measured/.
class Folder {
 public:
  explicit Folder(const std::string& name) : root_(fs::temp_directory_path() / ("nd_rules_test_" + name)) {
    fs::create_directories(root_ / "measured");
    write("sources.yaml", "schema: nd/measured-sources/1\nrules: []\n");
    write("models.yaml", "schema: nd/measured-models/1\nmodels: []\n");
    write("quarantine.csv", "source,model,config,notes,figure,reason\n");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& file, const std::string& text) const { std::ofstream(root_ / "measured" / file) << text; }
  [[nodiscard]] nd::DataStore data() const { return nd::DataStore(root_.string()); }

 private:
  fs::path root_;
};

}  // namespace

TEST_CASE("the shipped rules read and name only what exists", "[validation]") {
  const nd::DataStore data(ND_TEST_DATA_DIR);
  const auto book = nd::report::load_rule_book(data);
  if (!book) FAIL(nd::to_text(book.error().diagnostics.front()));
  CHECK(book->sources.size() > 50);
  CHECK(book->models.size() > 20);
  for (const auto& rule : book->sources) {
    if (rule.framework.empty()) continue;
    INFO(rule.name << ": " << rule.framework << " " << rule.version);
    CHECK(data.framework(rule.framework, rule.version.find('$') == std::string::npos ? rule.version : "", {}).has_value());
  }
}

TEST_CASE("every row of the sample is mapped", "[validation]") {
  const nd::DataStore data(ND_TEST_DATA_DIR);
  const auto book = nd::report::load_rule_book(data);
  const auto rows = nd::formats::read_measured_table(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  REQUIRE(book);
  REQUIRE(rows);
  for (const auto& row : *rows) {
    const auto mapped = nd::report::map_row(row, *book);
    INFO(row.line << " " << row.source << " " << mapped.skip);
    CHECK(mapped.skip.empty());
    CHECK(mapped.framework != "generic");
  }
}

TEST_CASE("broken rules are refused, all problems at once", "[validation]") {
  const Folder folder("broken");
  folder.write("sources.yaml",
               "schema: nd/measured-sources/1\nrules:\n  - when: {sorce: \"*x*\"}\n    set: {etpp: \"1\"}\n    framwork: megatron\n");
  folder.write("models.yaml", "schema: nd/measured-models/1\nmodels:\n  - when: {model: \"x\"}\n    fill: {hidden: 3}\n");
  folder.write("quarantine.csv", "source,model,config,notes,figure,reason\nx,,pp:3,,speed,\n");
  const auto book = nd::report::load_rule_book(folder.data());
  REQUIRE_FALSE(book);
  std::string all;
  for (const auto& diagnostic : book.error().diagnostics) all += nd::to_text(diagnostic) + "\n";
  INFO(all);
  for (const char* part : {"sorce", "did you mean 'etp'?", "framwork", "no field of a model", "'pp:3' is no column=value",
                           "must be time, memory or empty", "needs a reason"})
    CHECK(all.find(part) != std::string::npos);
}

TEST_CASE("a missing data folder is an error with its path", "[validation]") {
  const auto book = nd::report::load_rule_book(nd::DataStore("/nonexistent-folder"));
  REQUIRE_FALSE(book);
  CHECK(book.error().code() == nd::Errc::io);
}

TEST_CASE("quarantine needs all of its columns to match", "[validation]") {
  const Folder folder("quarantine");
  folder.write("quarantine.csv", "source,model,config,notes,figure,reason\n*bench*,gpt*,pp=16 devices=16,,time,slow fabric\n");
  const auto book = nd::report::load_rule_book(folder.data());
  REQUIRE(book);
  nd::MeasuredRow row;
  row.source = "a benchmark";
  row.model = "gpt-1b";
  row.pp = 16;
  row.devices = 16;
  const auto* rule = nd::report::find_quarantine(*book, row);
  REQUIRE(rule != nullptr);
  CHECK(rule->reason == "slow fabric");
  CHECK(rule->figure == nd::report::QuarantinedFigure::time);
  row.devices = 32;
  CHECK(nd::report::find_quarantine(*book, row) == nullptr);
}
