// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "files.hpp"
#include "nd/compare.hpp"
#include "nd/search.hpp"
#include "support/json_schema.hpp"
#include "support/scenarios.hpp"

namespace {

using nd::ComparedPart;
using nd::testing::TextFile;

/// The model of the tests on 16 devices with 128 sequences a step.
nd::ComparisonBase base() {
  nd::ComparisonBase out;
  out.stated.devices = 16;
  out.stated.global_batch_size = 128;
  out.stated.seq_length = 2048;
  out.stated.micro_batch_size = 1;
  out.stated.zero = nd::ZeroLevel::optimizer;
  out.scenario = nd::testing::make_scenario(nd::testing::llama_8b(), {.devices = 16, .global_batch = 128, .seq_length = 2048});
  const auto run = nd::resolve_run(out.stated, out.scenario.model, out.scenario.profile);
  REQUIRE(run);
  out.scenario.run = *run;
  return out;
}

struct Degrees {
  int dp = 1, tp = 1, pp = 1;
};

/// What the model itself would measure, part by part times `factors`, as a classified table in milliseconds.
std::string generated_table(const nd::ComparisonBase& base, const std::vector<Degrees>& rows, const nd::PriceFactors& factors) {
  std::string out = "DP,TP,PP,time,comp,dp_wait,op_wait,mp_wait,ep_wait,cp_wait,pp_wait\n";
  for (const Degrees& row : rows) {
    nd::Scenario scenario = base.scenario;
    nd::RunSpec stated = base.stated;
    stated.dp = row.dp;
    stated.tp = row.tp;
    stated.pp = row.pp;
    const auto run = nd::resolve_run(stated, scenario.model, scenario.profile);
    REQUIRE(run);
    scenario.run = *run;
    nd::TimeBreakdown time = nd::price_strategy(scenario, run->strategy).time;
    nd::scale(time, factors);
    const auto ms = [&](std::initializer_list<nd::TimePart> parts) {
      double sum = 0;
      for (const auto part : parts) sum += time.part(part).value * 1e3;
      return sum;
    };
    using enum nd::TimePart;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", row.dp, row.tp, row.pp, time.step.value * 1e3, ms({fw_compute, bw_compute, recompute, optimizer}), ms({dp_reduce}),
                       ms({dp_comm}), ms({tp_comm}), ms({ep_comm}), ms({cp_comm}), ms({pp_comm, bubble}));
  }
  return out;
}

nd::Result<nd::Comparison> compare(const std::string& text, const nd::PriceFactors& factors = {}) {
  const TextFile file("steps.csv", text);
  const auto table = nd::read_step_table(file.path());
  REQUIRE(table);
  return nd::compare_steps(*table, base(), factors);
}

const std::vector<Degrees> kRows{{16, 1, 1}, {8, 2, 1}, {4, 4, 1}, {2, 8, 1}, {8, 1, 2}, {4, 2, 2}, {2, 2, 4}, {4, 1, 4}};

/// Problems of a document against a schema of the data folder.
std::vector<std::string> schema_problems(const nlohmann::json& document, const std::string& schema) {
  std::ifstream file(std::string(ND_TEST_DATA_DIR) + "/schema/" + schema + ".schema.json");
  return nd::testing::schema_problems(document, nlohmann::json::parse(file));
}

}  // namespace

TEST_CASE("a table that the model made agrees in every part", "[measured]") {
  const auto comparison = compare(generated_table(base(), kRows, {}));
  REQUIRE(comparison);
  CHECK(comparison->priced() == 8);
  CHECK(comparison->step.max_ape < 1e-9);
  REQUIRE(comparison->problems.size() == 1);
  const auto& ranking = comparison->problems[0];
  CHECK(ranking.quality.regret == 0);
  CHECK(*ranking.quality.kendall == 1.0);
  CHECK(ranking.leading == 8);
  CHECK(ranking.top_overlap == std::array<double, 3>{1, 1, 1});
  CHECK(*comparison->share_distance < 1e-9);
  for (const auto part : {ComparedPart::compute, ComparedPart::dp, ComparedPart::mp, ComparedPart::pp, ComparedPart::idle})
    for (const auto& run : comparison->rows) CHECK(*run.measured_part(part) == Approx(run.estimated_part(part)).margin(1e-9));
  // Nothing is estimated or measured for experts: no correlation, and the reason.
  CHECK_FALSE(comparison->parts[static_cast<std::size_t>(ComparedPart::ep)].pearson);
  CHECK(comparison->parts[static_cast<std::size_t>(ComparedPart::ep)].why_none == "the measured values are all equal");
}

TEST_CASE("ratios of a table that the model made with factors come back, and mend the comparison", "[measured]") {
  nd::PriceFactors truth;
  using enum nd::TimePart;
  for (const auto part : {fw_compute, bw_compute, recompute, optimizer}) truth.time[static_cast<std::size_t>(part)] = 1.25;
  truth.time[static_cast<std::size_t>(tp_comm)] = 0.7;
  truth.time[static_cast<std::size_t>(dp_reduce)] = 1.6;
  for (const auto part : {pp_comm, bubble}) truth.time[static_cast<std::size_t>(part)] = 2.0;
  const std::string table = generated_table(base(), kRows, truth);
  const auto comparison = compare(table);
  REQUIRE(comparison);
  CHECK(comparison->step.mean_ape > 0.1);
  const nd::RatioFit fit = nd::fit_ratios(nd::ratio_samples(*comparison));
  CHECK(fit.level == nd::RatioLevel::per_part);
  const nd::PriceFactors found = fit.calibration(nd::fitted_on(*comparison)).factors();
  for (const auto part : {fw_compute, tp_comm, dp_reduce, pp_comm, bubble})
    CHECK(found.time[static_cast<std::size_t>(part)] == Approx(truth.time[static_cast<std::size_t>(part)]).epsilon(1e-5));
  const auto mended = compare(table, found);
  REQUIRE(mended);
  CHECK(mended->calibrated);
  CHECK(mended->step.max_ape < 1e-5);
  CHECK(mended->fingerprint.calibration != comparison->fingerprint.calibration);
  CHECK(mended->fingerprint.device == comparison->fingerprint.device);

  SECTION("the search ranks by the same factors, over the whole space") {
    const nd::Scenario scenario = base().scenario;
    nd::SearchOptions options;
    options.jobs = 1;
    options.top = 5;
    nd::SearchSpace space;
    space.of(nd::Dimension::recompute).values = {2};
    const auto result = nd::calibrated_search(scenario, space, options, found);
    REQUIRE(result.candidates.size() == 5);
    REQUIRE(result.ranking.size() > 5);
    for (std::size_t i = 1; i < result.ranking.size(); ++i) CHECK(result.ranking[i - 1].step.value <= result.ranking[i].step.value * (1 + 1e-9));
    const nd::Scenario priced = nd::search_scenario(scenario, space, options);
    for (const auto& candidate : result.candidates) {
      auto plain = nd::price_strategy(priced, candidate.config);
      const double before = plain.time.step.value;
      nd::scale(plain.time, found);
      CHECK(candidate.time.step.value == plain.time.step.value);
      CHECK(candidate.tokens_per_second == Approx(plain.tokens_per_second * before / plain.time.step.value));
    }
  }
}

TEST_CASE("rows that cannot be priced are listed with the reason; none left is an error", "[measured]") {
  const auto comparison = compare("DP,TP,PP,time\n8,2,1,1000\n3,2,1,1000\n2,1,8,1000\n2,16,1,1000\n8,2,1,\n");
  REQUIRE(comparison);
  CHECK(comparison->priced() == 2);
  CHECK_FALSE(comparison->rows[1].skipped.empty());
  CHECK_FALSE(comparison->rows[3].skipped.empty());
  CHECK(comparison->rows[4].skipped == "no measured step time");
  const std::string text = nd::comparison_text(*comparison);
  CHECK_THAT(text, Catch::Contains("not priced:") && Catch::Contains("line 3:") && Catch::Contains("line 5: "));
  const auto none = compare("DP,TP,PP,time\n3,2,1,1000\n5,1,1,1000\n");
  REQUIRE_FALSE(none);
  CHECK(none.error().diagnostics.size() == 2);
}

TEST_CASE("missing dimensions are the configuration's, dp follows", "[measured]") {
  const auto comparison = compare("TP,time,peak_mem_gib\n4,1000,30\n");
  REQUIRE(comparison);
  CHECK(comparison->rows[0].config.dp == 4);
  CHECK(comparison->rows[0].config.tp == 4);
  CHECK(comparison->rows[0].config.micro_batch_num == 32);
  CHECK(comparison->memory.n == 1);
  CHECK(*comparison->rows[0].sample.estimated_memory > 1);
}

TEST_CASE("documents of a comparison: JSON, CSV, charts, page", "[measured]") {
  nd::PriceFactors slower;
  for (double& factor : slower.time) factor = 1.2;
  const auto comparison = compare(generated_table(base(), kRows, slower) + "3,1,1,1,1,1,1,1,1,1,1\n");
  REQUIRE(comparison);
  const nd::RatioFit fit = nd::fit_ratios(nd::ratio_samples(*comparison));
  const auto json = nlohmann::json::parse(nd::comparison_json(*comparison, &fit));
  CHECK(schema_problems(json, "comparison") == std::vector<std::string>{});
  CHECK(json["schema"] == "nd/comparison/1");
  CHECK(json["rows"].size() == 9);
  CHECK(json["priced"] == 8);
  CHECK(json["step_time"]["mean_ape"].get<double>() == Approx(1 - 1 / 1.2));
  CHECK(json["fit"]["ratios"]["COMPUTE"]["ratio"].get<double>() == Approx(1.2));
  // Nine rows and the header; what is priced has a step.
  const std::string csv = nd::comparison_csv(*comparison);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 10);
  const auto charts = nd::comparison_charts(*comparison);
  REQUIRE(charts.size() == 3);
  for (const auto& chart : charts) {
    INFO(chart.name);
    CHECK_THAT(chart.svg, Catch::StartsWith("<svg xmlns="));
    CHECK(chart.svg.find("nan") == std::string::npos);
    CHECK(chart.svg.find("inf ") == std::string::npos);
  }
  const std::string page = nd::comparison_html(*comparison, &fit);
  CHECK_THAT(page, Catch::Contains("<svg") && Catch::Contains("Ratios") && Catch::EndsWith("</html>\n"));
}

TEST_CASE("Ratios are applied to rows with the trainer settings they were fitted on, and to no others") {
  // The same job with and without adapters, as published by fms-acceleration (mistral-7b on one A100).
  const std::string head =
      "source,model,params_b,hidden,layers,heads,kv_heads,head_dim,ffn,vocab,experts,topk,moe_ffn,shared_experts,seq_len,device,devices,dp,tp,pp,cp,ep,vpp,sp,zero_stage_or_fsdp,mbs,gbs,"
      "recompute,dtype,step_time_s,tokens_per_s_per_device,tflops_per_device,mfu,peak_mem_gib,notes\n";
  const std::string job =
      "foundation-model-stack/fms-acceleration scripts/benchmarks/refs/a100_80gb.csv,mistral-7b,7.242,4096,32,32,8,128,14336,32000,,,,,4096,A100-80G-SXM,1,1,1,1,1,1,1,0,none,4,4,full,bf16,4.9,,,,,";
  const TextFile table("settings.csv", head + job + "\"framework_config none; full fine-tuning, 16-bit weights and Adam states\"\n" + job +
                                           "\"framework_config none; peft lora r=16 on q_proj k_proj v_proj o_proj\"\n");
  const nd::DataStore data(ND_TEST_DATA_DIR);
  const auto plain = nd::compare_runs(table.path(), data);
  REQUIRE(plain);
  REQUIRE(plain->rows.size() == 2);
  CHECK(plain->rows[0].settings != plain->rows[1].settings);
  CHECK(nd::fitted_on(*plain).settings.size() == 2);
  nd::PriceFactors twice;
  twice.time.fill(2);
  twice.settings = {plain->rows[1].settings};
  const auto corrected = nd::compare_runs(table.path(), data, twice);
  REQUIRE(corrected);
  CHECK(corrected->rows[0].estimated == plain->rows[0].estimated);
  CHECK(corrected->rows[1].estimated == Approx(2 * plain->rows[1].estimated).epsilon(1e-12));
  REQUIRE_FALSE(corrected->notes.empty());
  CHECK(corrected->notes.back().message == "1 rows run the trainer with settings that the ratios were not fitted on; their estimates stay as they are");
  twice.settings.clear();
  CHECK(nd::compare_runs(table.path(), data, twice)->rows[0].estimated == Approx(2 * plain->rows[0].estimated).epsilon(1e-12));
}
