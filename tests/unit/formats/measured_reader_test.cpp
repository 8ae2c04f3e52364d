// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "formats/readers/measured.hpp"

namespace {

const std::string kHeader = "source,model,device,devices,dp,tp,pp,cp,hidden,layers,heads,vocab,seq_len,mbs,gbs,sp,step_time_s,notes\n";

}  // namespace

TEST_CASE("a measured table: typed cells, empty cells absent, lines kept", "[formats][measured]") {
  const auto rows = nd::formats::parse_measured_table(
      kHeader + "paper,gpt,A100,8,2,4,1,,1024,24,16,50257,2048.0,1,16,1,1.5,\"OOM; a, b\"\n" + "paper,gpt,A100,8,2,4,1,1,1024,24,16,50257,2048,,,0,,\n", "t.csv");
  REQUIRE(rows);
  REQUIRE(rows->size() == 2);
  const nd::MeasuredRow& first = rows->front();
  CHECK(first.file == "t.csv");
  CHECK(first.line == 2);
  CHECK(first.devices == 8);
  CHECK_FALSE(first.cp);
  CHECK(first.seq_len == 2048.0);
  CHECK(first.sp == true);
  CHECK(first.step_time_s == 1.5);
  CHECK(first.notes == "OOM; a, b");
  CHECK(first.out_of_memory());
  const nd::MeasuredRow& second = rows->back();
  CHECK(second.line == 3);
  CHECK_FALSE(second.mbs);
  CHECK_FALSE(second.step_time_s);
  CHECK(second.sp == false);
}

TEST_CASE("a measured table: every problem at once, with line and column", "[formats][measured]") {
  const auto rows = nd::formats::parse_measured_table(
      "sourc,model,device,devices,dp,tp,pp,hidden,layers,heads,vocab,seq_len,gbs\n"
      "paper,gpt,A100,eight,2,4,1,1024,24,16,50257,2048,16\n"
      "paper,gpt,A100,8,0,4,1,1024,24,16,50257,-1,16\n",
      "t.csv");
  REQUIRE_FALSE(rows);
  std::string all;
  for (const auto& diagnostic : rows.error().diagnostics) all += nd::to_text(diagnostic) + "\n";
  INFO(all);
  REQUIRE(rows.error().diagnostics.size() == 5);
  CHECK(all.find("t.csv:1: sourc: no column of a measured table (did you mean 'source'?)") != std::string::npos);
  CHECK(all.find("t.csv:1: source: the column is missing") != std::string::npos);
  CHECK(all.find("t.csv:2") != std::string::npos);
  CHECK(all.find("must be at least 1, is 0") != std::string::npos);
  CHECK(all.find("must be a number that is not negative") != std::string::npos);
}

TEST_CASE("a measured table: optional columns say what the rules would guess", "[formats][measured]") {
  const auto rows = nd::formats::parse_measured_table(
      "source,model,device,devices,dp,tp,pp,hidden,layers,heads,vocab,seq_len,gbs,reading,framework,framework_version\n"
      "paper,gpt,A100,8,2,4,1,1024,24,16,50257,2048,16,allocated last_stage,nanotron,2024\n",
      "t.csv");
  REQUIRE(rows);
  CHECK(rows->front().reading == "allocated last_stage");
  CHECK(rows->front().framework == "nanotron");
  CHECK(rows->front().framework_version == "2024");
}

TEST_CASE("the shipped sample reads", "[formats][measured]") {
  const auto rows = nd::formats::read_measured_table(std::string(ND_TEST_DATA_DIR) + "/measured/sample.csv");
  REQUIRE(rows);
  CHECK(rows->size() == 22);
  for (const auto& row : *rows) CHECK_FALSE(row.source.empty());
}
