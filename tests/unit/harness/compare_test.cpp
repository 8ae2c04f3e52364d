// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "folder.hpp"
#include "nd/bench.hpp"

namespace {

using nd::testing::Folder;

nd::TableRow row(const std::string& id, nd::RunStatus status, double seconds, const nd::NamedTexts& facts) {
  nd::TableRow out;
  out.plan.id = out.result.id = id;
  out.plan.name = "run " + id;
  out.plan.facts = facts;
  out.result.status = status;
  if (seconds > 0) out.result.steps = {5, seconds, seconds, 0, seconds, seconds, "step_time"};
  return out;
}

}  // namespace

TEST_CASE("constant columns are left out, failed runs and single runs survive", "[tables]") {
  // Defect 43: with one failed run its error column was taken for constant; one run alone lost all columns.
  const nd::NamedTexts facts{{"learning_rate", "1e-4"}, {"num_gpus", "2"}};
  auto changed = facts;
  changed[0].second = "2e-4";
  std::vector<nd::TableRow> rows{row("a", nd::RunStatus::ok, 1.5, facts)};
  CHECK(nd::benchmarks_csv(rows).find("learning_rate") != std::string::npos);
  rows.push_back(row("b", nd::RunStatus::ok, 2.5, facts));
  CHECK(nd::benchmarks_csv(rows).find("learning_rate") == std::string::npos);
  CHECK(nd::benchmarks_csv(rows).find("num_gpus") != std::string::npos);
  rows.push_back(row("c", nd::RunStatus::crash, 0, changed));
  CHECK(nd::benchmarks_csv(rows).find("run c") == std::string::npos);
  CHECK(nd::raw_summary_csv(rows).find("run c,crash") != std::string::npos);
  CHECK(nd::steps_csv(rows).empty());  // no strategy is stated
}

TEST_CASE("a comparison knows better from worse, missing, new and failed", "[compare]") {
  const Folder folder("compare");
  const std::string head = "model_name_or_path,num_gpus,max_seq_len,learning_rate,train_tokens_per_second,mem_torch_mem_alloc_in_bytes\n";
  // a: 20 % slower; b: 20 % faster; c: within 10 %; d: has no figure any more; e: only old; memory of c grew by 10 %.
  const auto old_file = folder.write("old.csv", head + "a,1,512,1e-4,100,50\nb,1,512,1e-4,100,50\nc,1,512,1e-4,100,50\nd,1,512,1e-4,100,50\ne,1,512,1e-4,100,50\n");
  const auto new_file = folder.write("new.csv", head + "a,1,512,2e-4,80,50\nb,1,512,1e-4,120,50\nc,1,512,1e-4,95,55\nd,1,512,1e-4,,\nf,1,512,1e-4,100,50\n");
  const auto comparison = nd::compare_tables(old_file, new_file, nd::default_compare_rule());
  REQUIRE(comparison.has_value());
  CHECK(comparison->common == 4);
  REQUIRE(comparison->differences.size() == 3);
  CHECK(comparison->differences[0].relative == Approx(-0.2));
  CHECK(comparison->differences[0].regression);
  CHECK_FALSE(comparison->differences[1].regression);
  CHECK(comparison->differences[2].metric == "mem_torch_mem_alloc_in_bytes");
  CHECK(comparison->differences[2].regression);
  CHECK(comparison->missing.size() == 1);
  CHECK(comparison->fresh.size() == 1);
  CHECK(comparison->failed.size() == 2);
  REQUIRE(comparison->differing_arguments.size() == 1);
  CHECK(comparison->differing_arguments[0].find("learning_rate 1e-4 -> 2e-4") != std::string::npos);
  CHECK(comparison->regressed());
  const auto same = nd::compare_tables(old_file, old_file, nd::default_compare_rule());
  REQUIRE(same.has_value());
  CHECK_FALSE(same->regressed());
}

TEST_CASE("rows that the keys do not tell apart are refused", "[compare]") {
  const Folder folder("keys");  // defect 46: they were joined crosswise
  const auto file = folder.write("t.csv", "num_gpus,warmup,step_time_s\n1,1,2\n1,2,3\n");
  const auto refused = nd::compare_tables(file, file, nd::default_compare_rule());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().diagnostics[0].message == "a second row has num_gpus=1");
  auto rule = nd::default_compare_rule();
  rule.keys.push_back("warmup");
  CHECK(nd::compare_tables(file, file, rule).has_value());
}
