// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nd/validation.hpp"
#include "report/validation_left_out.hpp"
#include "report/validation_memory_tables.hpp"
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
  REQUIRE(report->notes.size() == 1);  // the device that is missing, once
  CHECK(report->notes[0].severity == nd::Severity::warning);
  CHECK(report->notes[0].message == "no device file is named 'Zeus-9000': 1 rows are not priced");
}

TEST_CASE("tables nothing of which can be priced are an error, and so are no rows", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  for (auto& row : rows) row.device = "Zeus-9000";
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  CHECK(report->priced == 0);
  REQUIRE_FALSE(report->notes.empty());
  CHECK(report->notes.back().severity == nd::Severity::error);
  CHECK(report->notes.back().message == "none of the 22 rows could be priced");
  CHECK_FALSE(nd::validate_rows({}, nd::DataStore(ND_TEST_DATA_DIR)));
}

TEST_CASE("what a row states and nobody understands is not assumed away", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  rows.resize(3);
  rows[0].recompute = "abc";
  rows[1].dtype = "abc";
  rows[2].zero = "abc";
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  CHECK(report->rows[0].skipped == "recompute 'abc' not understood");
  CHECK(report->rows[1].skipped == "data type 'abc' not understood");
  CHECK(report->rows[2].skipped == "sharding 'abc' not understood");
}

TEST_CASE("a broken file of the data folder is an error, never another profile", "[validation]") {
  namespace fs = std::filesystem;
  const auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  const auto folder = fs::temp_directory_path() / "nd_validation_broken";
  for (const char* broken : {"devices/a100-sxm-80.yaml", "frameworks/megatron-core.yaml"}) {
    fs::remove_all(folder);
    fs::copy(ND_TEST_DATA_DIR, folder, fs::copy_options::recursive);
    std::ofstream(folder / broken, std::ios::app) << "surprise: 1\n";
    const auto report = nd::validate_rows(rows, nd::DataStore(folder.string()));
    INFO(broken);
    REQUIRE_FALSE(report);
    CHECK(report.error().diagnostics.front().where.file.find(broken) != std::string::npos);
    CHECK(report.error().diagnostics.front().where.line > 0);
    CHECK(report.error().diagnostics.size() == 1);  // however many rows need the file
  }
  fs::remove_all(folder);
}

TEST_CASE("other models' errors stand beside this one's on the same rows", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  const auto without = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(without);
  CHECK(without->peers.empty());  // the sample's file is in no group
  for (auto& row : rows) row.file = "somewhere/vtrain_a100_multinode.csv";
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  REQUIRE_FALSE(report->peers.empty());
  const nd::PeerGroup& all = report->peers.front();
  CHECK(all.own.rows == report->overall.step_time.n);
  CHECK(*all.own.mean == Approx(report->overall.step_time.mean_ape));
  REQUIRE(all.peers.size() == 6);
  CHECK(all.peers[0].name == "vTrain");
  CHECK(*all.peers[0].mean == Approx(0.1473));
  CHECK(nd::validation_markdown(*report).find("## Beside other models") != std::string::npos);
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
  for (const char* title : {"By file", "By device", "By framework", "Memory by reading", "Memory with each source left out", "Fit test", "Worst step times"}) {
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

TEST_CASE("without a source its fitted constants fall back, what others confirm or was counted stays", "[validation]") {
  nd::FrameworkProfile profile, generic;
  profile.name = "trainer";
  profile.memory.logit_bytes = 4;
  profile.memory.swiglu_bytes = 6;
  profile.memory.optimizer_temporary = nd::OptimizerTemporary::all_gradients;
  generic.memory.logit_bytes = 10;
  generic.memory.swiglu_bytes = 8;
  generic.memory.optimizer_temporary = nd::OptimizerTemporary::largest_tensor;
  profile.sources["memory.logit_bytes"].kind = nd::FigureKind::fitted;
  profile.sources["memory.optimizer_temporary"].kind = nd::FigureKind::fitted;
  profile.sources["memory.swiglu_bytes"].kind = nd::FigureKind::datasheet;

  nd::report::FittedEvidence evidence;
  evidence.add(profile, "a.csv");
  nd::FrameworkProfile without = evidence.without(profile, generic, "a.csv");
  CHECK(without.memory.logit_bytes == 10);
  CHECK(without.memory.optimizer_temporary == nd::OptimizerTemporary::largest_tensor);
  CHECK(without.memory.swiglu_bytes == 6);
  CHECK(without.name == "trainer");

  nd::FrameworkProfile other = profile;  // another version of the trainer whose loss takes more
  other.memory.logit_bytes = 6;
  evidence.add(other, "b.csv");
  without = evidence.without(profile, generic, "a.csv");
  CHECK(without.memory.logit_bytes == 10);  // b.csv says 6, not 4
  CHECK(without.memory.optimizer_temporary == nd::OptimizerTemporary::all_gradients);
}

TEST_CASE("every scored memory row is priced once more without its source", "[validation]") {
  const nd::ValidationReport report = sample_report();
  std::size_t scored = 0, moved = 0;
  for (const auto& row : report.rows) {
    CHECK(row.left_out_peak_mem_gib.has_value() == row.memory_error().has_value());
    if (!row.memory_error()) continue;
    ++scored;
    moved += *row.left_out_peak_mem_gib != *row.predicted_peak_mem_gib ? 1U : 0U;
  }
  CHECK(scored > 5);
  CHECK(moved > 0);
  const auto groups = nd::report::memory_by_source(report);
  REQUIRE(groups.size() > 1);
  CHECK(groups.back().name == "all");
  CHECK(groups.back().as_priced == report.overall.memory);
  CHECK(groups.back().left_out.n == report.overall.memory.n);
}

TEST_CASE("ranks that the notes name are compared stage by stage", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  const auto named = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.notes.find("per-rank max allocated GiB") != std::string::npos; });
  REQUIRE(named != rows.end());
  rows = {*named};
  const auto phrase = rows[0].notes.find("per-rank max allocated GiB");
  rows[0].notes.replace(phrase, rows[0].notes.find(';', phrase) - phrase, "per-rank max allocated GiB 0:10.5 1:11 7:9 8:99 x:1 2:-1");
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  const auto& peaks = report->rows[0].stage_peaks;
  REQUIRE(rows[0].pp.value_or(1) == 4);   // 8 devices: two ranks a stage
  REQUIRE(peaks.size() == 2);             // rank 8 does not exist, the last two words say nothing
  CHECK(peaks[0].stage == 0);
  CHECK(peaks[0].measured_gib == 11);     // the fuller of two
  CHECK(peaks[1].stage == 3);
  CHECK(peaks[0].predicted_gib > 0);
}

TEST_CASE("a device's reading is never above what the card has", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  const auto bloom = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.model.find("bloom") == 0 && row.peak_mem_gib; });
  REQUIRE(bloom != rows.end());
  rows = {*bloom, *bloom};
  rows[1].mbs = *rows[1].mbs * 16;  // far beyond 80 GB, and the ledger says so
  rows[1].gbs = *rows[1].gbs * 16;
  const auto report = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(report);
  CHECK(report->rows[0].reading.counter == nd::MemoryCounter::device);
  CHECK(report->rows[0].predicted_peak_mem_gib == Approx(report->rows[0].reserved_gib));
  REQUIRE(report->rows[1].reserved_gib > report->rows[1].budget_gib);
  // What the run would have to allocate is above the card too: the reading of such a run would be a failure's.
  CHECK(*report->rows[1].predicted_peak_mem_gib < report->rows[1].reserved_gib);
}

TEST_CASE("peaks that runs stated and how many are priced", "[validation]") {
  auto rows = *nd::read_measured_rows(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  const auto all = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(all);
  const auto before = nd::report::peak_coverage(*all);
  CHECK(before.stated == before.priced);  // the sample is priced whole
  for (auto& row : rows)
    if (row.peak_mem_gib && !row.out_of_memory()) {
      row.seq_len = std::nullopt;
      row.source = "somewhere";
      break;
    }
  const auto fewer = nd::validate_rows(rows, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(fewer);
  CHECK(nd::report::peak_coverage(*fewer).stated == before.stated);
  CHECK(nd::report::peak_coverage(*fewer).priced == before.priced - 1);
}
