// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "files.hpp"
#include "nd/compare.hpp"

namespace {

using nd::MeasuredColumn;
using nd::testing::TextFile;

nd::Result<nd::StepTable> read(const std::string& text) {
  const TextFile file("table.csv", text);
  return nd::read_step_table(file.path());
}

/// Every message of a refusal, one line each.
std::string refusal(const std::string& text) {
  const auto table = read(text);
  if (table) return {};
  std::string out;
  for (const auto& problem : table.error().diagnostics) out += nd::to_text(problem) + "\n";
  return out;
}

double part(const nd::MeasuredStep& step, MeasuredColumn column) { return step.columns[static_cast<std::size_t>(column)].value_or(-1); }

}  // namespace

TEST_CASE("parts that are more than the step are said", "[measured]") {
  const auto notes = [](const std::string& rows) {
    const nd::testing::TextFile file("parts.csv", "DP,time,comp,dp_wait\n" + rows);
    const auto table = nd::read_step_table(file.path());
    REQUIRE(table);
    return table->notes;
  };
  CHECK(notes("8,5000,4000,1000\n8,5000,4000,1090\n").empty());  // 101.8 %: two clocks
  const auto found = notes("8,5000,4000,1000\n8,5000,4000,2000\n");
  REQUIRE(found.size() == 1);
  CHECK(found.front().where.line == 3);
  CHECK(found.front().severity == nd::Severity::warning);
  CHECK(found.front().message == "comp and the waits are 120 % of the step");
}

TEST_CASE("a classified table: milliseconds, degrees, switches", "[measured]") {
  const auto table = read(
      "DP,MP,SP,recompute,time,comp,dp_wait,mp_wait,sp_wait,op_wait,step_trainer,peak_mem_gib\n"
      "8,2,True,full,1000,600,50,20,5,30,990,41.5\n"
      "4,4,0,,2000,1200,0,0,0,0,,\n");
  REQUIRE(table);
  CHECK(table->kind == nd::TableKind::classified);
  REQUIRE(table->steps.size() == 2);
  const auto& first = table->steps[0];
  CHECK(first.line == 2);
  CHECK(first.time == Approx(1.0));
  CHECK(first.trainer_time == Approx(0.99));
  CHECK(part(first, MeasuredColumn::compute) == Approx(0.6));
  CHECK(part(first, MeasuredColumn::dp_wait) == Approx(0.05));
  CHECK(part(first, MeasuredColumn::op_wait) == Approx(0.03));
  CHECK(part(first, MeasuredColumn::mp_wait) == Approx(0.025));  // mp_wait + sp_wait
  CHECK(first.memory_gib == Approx(41.5));
  CHECK(first.degrees.at(nd::Dimension::dp) == 8);
  CHECK(first.degrees.at(nd::Dimension::tp) == 2);
  CHECK(first.degrees.at(nd::Dimension::sequence_parallel) == 1);
  CHECK(first.degrees.at(nd::Dimension::recompute) == static_cast<std::int64_t>(nd::Recompute::full));
  // SP is a switch: 0 is off, not a non-empty text.
  CHECK(table->steps[1].degrees.at(nd::Dimension::sequence_parallel) == 0);
  CHECK(table->steps[1].degrees.count(nd::Dimension::recompute) == 0);
  CHECK_FALSE(table->steps[1].memory_gib);
}

TEST_CASE("units by the suffix of the column", "[measured]") {
  const auto seconds = read("time_s,comp_us,dp_wait_ms,memory_mib\n1.5,600000,50,2048\n");
  REQUIRE(seconds);
  CHECK(seconds->steps[0].time == Approx(1.5));
  CHECK(part(seconds->steps[0], MeasuredColumn::compute) == Approx(0.6));
  CHECK(part(seconds->steps[0], MeasuredColumn::dp_wait) == Approx(0.05));
  CHECK(seconds->steps[0].memory_gib == Approx(2.0));
  const auto gb = read("time,memory_gb\n1,10\n");
  REQUIRE(gb);
  CHECK(gb->steps[0].memory_gib == Approx(10e9 / (1024.0 * 1024 * 1024)));
}

TEST_CASE("wrong and missing columns are explained by name, all at once", "[measured]") {
  using Catch::Contains;
  CHECK_THAT(refusal("comp,dp_wait\n1,2\n"), Contains("time: the column is missing"));
  CHECK_THAT(refusal("time,xp_wait\n1,2\n"), Contains("xp_wait: no wait column that is known"));
  CHECK_THAT(refusal("time,memory\n1,2\n"), Contains("memory without a unit"));
  CHECK_THAT(refusal("time,timr\n1,2\n"), Contains("timr") && Contains("did you mean"));
  CHECK_THAT(refusal("time,comp,compute\n1,2,3\n"), Contains("a second column for the same figure"));
  CHECK_THAT(refusal("time,time_s\n1,2\n"), Contains("a second column for the same figure"));
  CHECK_THAT(refusal("time,TP,MP\n1,2,2\n"), Contains("a second column for the same figure"));
  const std::string several = refusal("time,SP,DP,recompute\nfast,maybe,two,full+selective\n-3,1,0,full\n");
  CHECK_THAT(several, Contains("time: must be a number"));
  CHECK_THAT(several, Contains("SP: must be true or false, is 'maybe'"));
  CHECK_THAT(several, Contains(":2: DP:"));
  CHECK_THAT(several, Contains("recompute: more than one value"));
  CHECK_THAT(several, Contains(":3: time: must be a number that is not negative"));
  CHECK_THAT(refusal("time\n"), Contains("no rows"));
}

TEST_CASE("a table of runs is recognised by what its rows state", "[measured]") {
  const auto table = read("source,model,device,step_time_s\na,b,c,1\n");
  REQUIRE(table);
  CHECK(table->kind == nd::TableKind::runs);
}

TEST_CASE("results of the fms harness: step time from samples per second, runs that failed are said", "[measured]") {
  const auto table = read(
      "framework_config,mem_nvidia_mem_reserved,mem_peak_torch_mem_alloc_in_bytes,model_name_or_path,num_gpus,peft_method,per_device_train_batch_size,train_runtime,train_samples_per_second\n"
      "none,15116,11267745280,bigcode/gpt_bigcode-santacoder,1,,4,47.6604,8.393\n"
      "none,,,bigcode/gpt_bigcode-santacoder,2,,4,,\n"
      "accelerated-peft-bnb,9000,,mistral,2,,4,47.6604,8.393\n"
      "none,9000,,mistral,2,lora,4,47.6604,8.393\n"
      "none,2048,,mistral,2,,4,47.6604,8\n");
  REQUIRE(table);
  CHECK(table->kind == nd::TableKind::benchmark);
  REQUIRE(table->steps.size() == 5);
  CHECK(table->steps[0].time == Approx(4 / 8.393));  // = runtime / 100 steps = 0.4766
  CHECK(table->steps[0].memory_gib == Approx(11267745280.0 / 1073741824));
  CHECK_FALSE(table->steps[0].memory_is_reserved);
  CHECK_THAT(table->steps[1].skipped, Catch::Contains("without final metrics"));
  CHECK_THAT(table->steps[2].notes, Catch::StartsWith("framework_config accelerated-peft-bnb; full fine-tuning"));
  CHECK_THAT(table->steps[3].notes, Catch::Contains("peft lora r=16 on q k v o"));
  CHECK(table->steps[4].time == Approx(1.0));  // 2 x 4 sequences at 8 a second
  CHECK(table->steps[4].memory_gib == Approx(2.0));
  CHECK(table->steps[4].memory_is_reserved);
  CHECK_THAT(refusal("num_gpus,train_runtime\n1,2\n"), Catch::Contains("per_device_train_batch_size: the column is missing"));
}
