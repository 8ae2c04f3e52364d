// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nd/validation.hpp"
#include "report/validation_tables.hpp"

namespace {

using Json = nlohmann::json;

nd::ValidationReport sample_report(int jobs = 1) {
  const auto rows = nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  REQUIRE(rows);
  auto report = nd::validate_rows(*rows, nd::DataStore(ND_TEST_DATA_DIR), jobs);
  if (!report) FAIL(nd::to_text(report.error().diagnostics.front()));
  return *report;
}

/// Members that `schema` requires and `value` has not, by path.
std::string missing_members(const Json& schema, const Json& value, const std::string& path) {
  std::string out;
  if (schema.contains("required"))
    for (const auto& key : schema["required"])
      if (!value.contains(key.get<std::string>())) out += path + "/" + key.get<std::string>() + " ";
  if (schema.contains("properties") && value.is_object())
    for (const auto& [key, child] : schema["properties"].items())
      if (value.contains(key)) out += missing_members(child, value[key], path + "/" + key);
  if (schema.contains("items") && value.is_array() && !value.empty()) out += missing_members(schema["items"], value[0], path + "/0");
  return out;
}

}  // namespace

TEST_CASE("the sample is priced, row by row", "[validation]") {
  const nd::ValidationReport report = sample_report();
  REQUIRE(report.rows.size() == 22);
  for (const auto& row : report.rows) {
    INFO(row.measured.line << " " << row.measured.source << ": " << row.skipped);
    CHECK(row.priced());
    if (!row.predicted_step_time_s) continue;
    CHECK(std::isfinite(*row.predicted_step_time_s));
    double sum = 0;
    for (const double part : row.time_parts_s) sum += part;
    CHECK(sum == Approx(*row.predicted_step_time_s));
    CHECK(*row.predicted_peak_mem_gib > 0);
  }
  CHECK(report.priced == 22);
}

TEST_CASE("errors of the report are those of its rows", "[validation]") {
  const nd::ValidationReport report = sample_report();
  std::vector<double> time, memory;
  for (const auto& row : report.rows) {
    if (const auto error = row.time_error(); error && !row.memory_only) time.push_back(*error);
    if (const auto error = row.memory_error()) memory.push_back(*error);
  }
  CHECK(report.overall.step_time == nd::error_statistics(time));
  CHECK(report.overall.memory == nd::error_statistics(memory));
  CHECK(report.overall.step_time.n > 10);
}

TEST_CASE("a failed run is a verdict, not a figure", "[validation]") {
  const nd::ValidationReport report = sample_report();
  CHECK(report.fit.failed_yes + report.fit.failed_tight + report.fit.failed_no == 1);
  for (const auto& row : report.rows) {
    if (!row.measured.out_of_memory()) continue;
    CHECK_FALSE(row.time_error());
    CHECK_FALSE(row.memory_error());
    CHECK(row.fit.has_value());
  }
}

TEST_CASE("the JSON document has what its schema requires and does not depend on the number of workers", "[validation]") {
  const std::string text = nd::validation_json(sample_report(1));
  CHECK(text == nd::validation_json(sample_report(3)));
  const Json document = Json::parse(text);
  CHECK(document["schema"] == "nd/validation/1");
  std::ifstream in(std::string(ND_TEST_DATA_DIR) + "/schema/validation.schema.json");
  REQUIRE(in);
  CHECK(missing_members(Json::parse(in), document, "") == "");
  CHECK(document["rows"].size() == 22);
}

TEST_CASE("an unknown device or trainer is said, not guessed in silence", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  rows.resize(2);
  rows[0].device = "Zeus-9000";
  rows[1].source = "somewhere";
  rows[1].notes = "";
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  CHECK(report->rows[0].skipped.rfind("device: ", 0) == 0);
  CHECK(report->rows[1].framework == "generic");
  REQUIRE_FALSE(report->rows[1].assumptions.empty());
  CHECK(report->rows[1].assumptions.front() == "framework unknown, generic profile taken");
}

TEST_CASE("a quarantined row is priced and left out of the errors", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  rows.resize(1);
  rows[0].source = "alibaba/Megatron-LLaMA issue";
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  CHECK(report->rows[0].priced());
  CHECK_FALSE(report->rows[0].quarantined.empty());
  CHECK_FALSE(report->rows[0].time_error());
  CHECK(report->overall.step_time.n == 0);
  CHECK(report->quarantined == 1);
}

TEST_CASE("the outputs hold the tables", "[validation]") {
  const nd::ValidationReport report = sample_report();
  const std::string text = nd::validation_text(report), markdown = nd::validation_markdown(report), html = nd::validation_html(report);
  for (const char* title : {"By file", "By device", "By framework", "Fit test", "Worst step times"}) {
    CHECK(text.find(title) != std::string::npos);
    CHECK(markdown.find(std::string("## ") + title) != std::string::npos);
    CHECK(html.find(title) != std::string::npos);
  }
  CHECK(html.find("<svg") != std::string::npos);
  CHECK(html.find("http") == std::string::npos);  // self-contained
}

TEST_CASE("tables escape what their format gives a meaning", "[validation]") {
  nd::report::StatisticsTable table;
  table.title = "t";
  table.header = {"a", "b"};
  table.rows = {{"x|y", "1<2"}};
  CHECK(nd::report::to_markdown(table) == "## t\n\n| a | b |\n|---|--:|\n| x\\|y | 1<2 |\n\n");
  CHECK(nd::report::to_html(table).find("1&lt;2") != std::string::npos);
  CHECK(nd::report::to_plain_text(table) == "t\na      b\nx|y  1<2\n");
}
