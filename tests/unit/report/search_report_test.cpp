// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nd/report.hpp"
#include "report/text_table.hpp"
#include "support/json_schema.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

using Json = nlohmann::json;

SearchReport small_report(double budget_gib) {
  SearchReport report;
  const auto scenario = testing::make_scenario(testing::small_moe(), {.devices = 4, .global_batch = 8, .seq_length = 512});
  SearchOptions options;
  options.keep_all = true;
  options.top = 3;
  options.jobs = 1;
  options.memory_limit = Bytes{budget_gib * kGiB};
  report.result = search_strategies(scenario, report.space, options);
  report.scenario = search_scenario(scenario, report.space, options);
  report.file = "train.yaml";
  report.format = "hf";
  RunSpec stated;
  stated.origins["devices"] = {Origin::Kind::flag, SourceRef{{}, 0, 0, "-d"}};
  report.request = request_fields(report.scenario, stated);
  report.defaulted = {"seq_length"};
  return report;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("The JSON document follows its schema, also when nothing fits") {
  const Json schema = Json::parse(read(std::filesystem::path(ND_TEST_SOURCE_DIR) / "data/schema/search.schema.json"));
  for (const double budget : {30.0, 0.001}) {
    const auto report = small_report(budget);
    CHECK(report.result.candidates.empty() == (budget < 1));
    const Json document = Json::parse(search_json(report));
    for (const auto& problem : testing::schema_problems(document, schema)) FAIL_CHECK(problem);
  }
}

TEST_CASE("The document says what the search found") {
  auto report = small_report(30.0);
  const Json document = Json::parse(search_json(report));
  CHECK(document["schema"] == "nd/search/1");
  CHECK(document["candidates"].size() == 3);
  CHECK(document["candidates"][0]["rank"] == 1);
  CHECK(document["request"]["fields"]["devices"]["value"] == 4);
  CHECK(document["request"]["fields"]["devices"]["origin"] == "flag");
  CHECK(document["request"]["fields"]["seq_length"]["origin"] == "default");
  CHECK(document["counts"]["fitting"] == report.result.stats.fitting);
  CHECK(document["jobs"].is_null());
  CHECK(document["phases_s"]["price"].is_null());
  // The parts of the document itself sum up.
  for (const auto& candidate : document["candidates"]) {
    double step = 0, memory = 0;
    for (const auto& part : candidate["time_parts_s"]) step += part.get<double>();
    for (const auto& part : candidate["memory_gib"]["parts"]) memory += part.get<double>();
    CHECK(step == Approx(candidate["step_time_s"].get<double>()).epsilon(1e-9));
    CHECK(memory == Approx(candidate["memory_gib"]["allocated"].get<double>()).epsilon(1e-9));
  }
  report.all = true;
  CHECK(Json::parse(search_json(report))["candidates"].size() == report.result.ranking.size());
  report.timings = true;
  CHECK(Json::parse(search_json(report))["jobs"] == 1);
}

TEST_CASE("The CSV has one line per candidate in ranked order") {
  const auto report = small_report(30.0);
  const auto folder = std::filesystem::temp_directory_path() / "nd_search_report_test";
  std::filesystem::remove_all(folder);
  const auto path = folder / "deep" / "ranking.csv";
  RankingCsv csv({.scenario = report.scenario, .jobs = 1, .paths = {path.string(), (folder / "copy.csv").string()}});
  for (const auto& candidate : report.result.ranking) csv.add(candidate.config);
  CHECK_FALSE(std::filesystem::exists(path));
  REQUIRE_FALSE(csv.commit());
  CHECK(read(path) == read(folder / "copy.csv"));
  std::istringstream lines(read(path));
  std::string line;
  std::getline(lines, line);
  CHECK(line.rfind("rank,tp,pp,cp,dp,ep,etp,sp,mbs,mb,vpp,schedule,zero,op,recompute,gbs,step_time_s,", 0) == 0);
  const auto commas = std::count(line.begin(), line.end(), ',');
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    ++rows;
    CHECK(line.rfind(std::to_string(rows) + ",", 0) == 0);
    CHECK(std::count(line.begin(), line.end(), ',') == commas);
  }
  CHECK(rows == report.result.ranking.size());
  // Only the result is there: no temporary file stays behind.
  CHECK(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}) == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("A file that cannot be written is reported and leaves nothing behind") {
  const auto folder = std::filesystem::temp_directory_path() / "nd_unwritable_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "taken");
  const auto problem = write_text_file((folder / "taken").string(), "text");
  REQUIRE(problem);
  CHECK(problem->code == Errc::io);
  CHECK(to_text(*problem) == "error: " + (folder / "taken").string() + ": cannot write the file: Is a directory");
  std::ofstream(folder / "file") << "x";
  CHECK(write_text_file((folder / "file" / "below").string(), "text"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 2);
  std::filesystem::remove_all(folder);
}

TEST_CASE("The table names what matters") {
  const auto text = search_table(small_report(30.0));
  for (const char* part : {"small-moe", "4 x test-64", "rank", "tokens/s/device", "MFU", "best", "GiB", "assumed, nobody stated it: seq_length = 512"})
    CHECK_THAT(text, Catch::Contains(part));
  const auto nothing = search_table(small_report(0.001));
  for (const char* part : {"Nothing fits.", "lacks", "would fit with"}) CHECK_THAT(nothing, Catch::Contains(part));
}

TEST_CASE("The explanation holds the ledger and the parts of the step") {
  const auto report = small_report(30.0);
  const auto text = explain_strategy(report.scenario, report.result.candidates.front());
  for (const char* part : {"Rank 1", "FW_COMPUTE", "OPTIMIZER", "activations", "reserved", "What stage", "100.0 %"})
    CHECK_THAT(text, Catch::Contains(part));
}

TEST_CASE("Text tables and short numbers") {
  report::TextTable table({{"name", report::Align::left}, {"n", report::Align::right}});
  table.add({"a", "10"});
  table.add({"long one"});
  CHECK(table.text() == "name       n\na         10\nlong one\n");
  CHECK(report::with_thousands(1234567) == "1,234,567");
  CHECK(report::with_thousands(-123) == "-123");
  CHECK(report::with_thousands(999) == "999");
  CHECK(report::short_count(8.03e9) == "8.03 B");
  CHECK(report::short_seconds(0.01234) == "12.34 ms");
  CHECK(report::short_seconds(1.5) == "1.500 s");
}

}  // namespace nd
