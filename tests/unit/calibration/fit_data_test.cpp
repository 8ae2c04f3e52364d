// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nd/fit.hpp"
#include "nd/report.hpp"
#include "nd/validation.hpp"
#include "report/validation_fit_plan.hpp"

namespace {

using namespace nd;

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

Scenario scenario_of(const std::string& device, const std::string& framework, const std::string& version) {
  Scenario scenario;
  scenario.cluster.device = *data().device(device);
  scenario.profile = *data().framework(framework, version, {});
  return scenario;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("the plan names constants that exist, each with a reading and at most twelve per framework version", "[fit]") {
  const auto plan = report::load_fit_plan(data());
  REQUIRE(plan);
  CHECK(plan->never == std::vector<std::string>{"vtrain_a100_multinode.csv"});
  for (const report::FitGroup& group : plan->groups) {
    INFO(group.name);
    if (group.framework.empty()) {
      if (group.covers_all_devices()) continue;
      for (const std::string& device : group.devices) CHECK(data().device(device));
      continue;
    }
    const auto versions = group.versions.empty() ? std::vector<std::string>{""} : group.versions;
    for (const std::string& version : versions) CHECK(data().framework(group.framework, version, {}));
    int constants = 0;
    for (const report::FitMember& member : plan->members)
      constants += member.of == "frameworks" && member.feature.empty() && (!member.stated_only || group.priors.count(member.member) > 0);
    CHECK(constants <= 12);
  }
  // A prior that no constant asks for is a misspelt one.
  for (const report::FitGroup& group : plan->groups)
    for (const auto& [key, prior] : group.priors) {
      INFO(group.name << " " << key);
      const bool known = std::any_of(plan->members.begin(), plan->members.end(),
                                     [&name = key](const report::FitMember& m) { return m.key() == name; });
      CHECK(known);
      CHECK(prior > 0);
    }
  Scenario any = scenario_of("a100-sxm-80", "megatron-core", "lm-2023");
  for (const report::FitMember& member : plan->members) {
    INFO(member.member);
    REQUIRE(!member.reading.empty());
    CHECK(member.width <= 0.5);
    const bool other_device = member.member == "vector_bandwidth" || member.member == "levels.rack.efficiency" ||
                              member.member.rfind("attention_fraction", 0) == 0;
    if (!other_device) CHECK(report::fit_member_address(any, member.member) != nullptr);
  }
}

TEST_CASE("a constant no row hangs on is not free", "[fit]") {
  Scenario scenario = scenario_of("a100-sxm-80", "megatron-core", "lm-2023");
  scenario.cluster.devices = 8;
  for (const char* member : {"moe_traffic_factor", "host_moe_factor", "ep_exposed", "fsdp_overlap", "tp_exposed", "fp4_share", "levels.scale-out.efficiency"}) {
    INFO(member);
    CHECK_FALSE(report::fit_member_used(scenario, member));
  }
  CHECK(report::fit_member_used(scenario, "host_layer_ms"));
  CHECK(report::fit_member_used(scenario, "levels.node.efficiency"));
  scenario.run.strategy.tp = 2;
  scenario.cluster.devices = 16;
  CHECK(report::fit_member_used(scenario, "tp_exposed"));
  CHECK(report::fit_member_used(scenario, "levels.scale-out.efficiency"));
}

TEST_CASE("an attention rate belongs to the kernel the framework runs", "[fit]") {
  Scenario scenario = scenario_of("h100-sxm-80", "megatron-core", "lm-2023");  // flash-2
  CHECK(report::fit_member_address(scenario, "attention_fraction.flash2") != nullptr);
  CHECK(report::fit_member_address(scenario, "attention_fraction.flash3") == nullptr);
  scenario.profile.memory.flash_attention = false;
  CHECK(report::fit_member_address(scenario, "attention_fraction.flash2") == nullptr);
}

TEST_CASE("fitted figures are written in place: read back as given, everything else kept", "[fit]") {
  FitReport fit;
  fit.learned_rows = 7;
  const auto constant = [](const char* group, const char* member, double before, double fitted) {
    FittedConstant out;
    out.group = group;
    out.member = member;
    out.before = before;
    out.fitted = fitted;
    out.z = 1;
    return out;
  };
  fit.constants = {constant("a100", "gemm_fraction", 0.8, 0.7125), constant("ascend-910b", "vector_bandwidth", 1.0, 1.5),
                   constant("megatron-deepspeed vtrain", "step_overhead_ms", 11, 13.5),
                   constant("megatron-deepspeed vtrain", "cp_exposed", 0.75, 0.625)};
  const std::string folder = (std::filesystem::temp_directory_path() / "nd_fit_data_test").string();
  std::filesystem::remove_all(folder);
  const auto files = write_fitted_files(fit, data(), folder);
  REQUIRE(files);
  CHECK(files->size() == 10);  // five A100 parts, four 910B parts, one framework
  const DataStore written(folder);
  CHECK(written.device("a100-sxm-80")->compute.gemm_fraction == Approx(0.7125));
  const double vector = data().device("ascend-910b2")->compute.vector_bandwidth->value;
  CHECK(written.device("ascend-910b2")->compute.vector_bandwidth->value == Approx(1.5 * vector).epsilon(1e-3));  // four digits are written
  const auto profile = written.framework("megatron-deepspeed", "vtrain", {});
  REQUIRE(profile);
  CHECK(profile->time.step_overhead_ms == Approx(13.5));
  CHECK(profile->time.cp_exposed == Approx(0.625));  // inherited until now
  const auto other = written.framework("megatron-deepspeed", "bigscience-fp16", {}), before = data().framework("megatron-deepspeed", "bigscience-fp16", {});
  CHECK(other->time == before->time);
  // One source line more, or replaced; one figure line changed.
  const std::string old_text = text_of(data().root() + "/devices/a100-sxm-80.yaml"), new_text = text_of(folder + "/devices/a100-sxm-80.yaml");
  CHECK(new_text.find("nd-fit: {citation: \"nd_validate --fit on 7 measured rows") != std::string::npos);
  CHECK(new_text.find("kind: fitted, source: [nd-fit]") != std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("the band of a request is the p90 of the narrowest group that was measured", "[fit]") {
  const Scenario known = scenario_of("a100-sxm-80", "llm-foundry", "");
  const Scenario wider = scenario_of("mi355x-288", "llm-foundry", "");
  const double here = step_time_band(data(), known), anywhere = step_time_band(data(), wider);
  CHECK(here > 0.02);
  CHECK(here < 0.2);
  CHECK(anywhere > 0.02);
  CHECK(step_time_band(DataStore("/nowhere"), known) == Approx(0.17));
  CHECK(step_time_repeat(DataStore("/nowhere"), known) == Approx(0.05));
  CHECK(step_time_repeat(data(), known) > 0.005);
  CHECK(step_time_repeat(data(), known) < step_time_band(data(), known));

  ValidationReport report;
  for (int i = 0; i < 11; ++i) {
    ValidatedRow row;
    row.framework = "generic";
    row.framework_version = "1";
    row.device = "a100-sxm-80";
    row.measured_step_time_s = 1.0;
    row.predicted_step_time_s = 1.0 + 0.01 * i;
    report.rows.push_back(row);
  }
  // |errors| 0 .. 10 %: the ninth of ten lies at 9 %.
  CHECK(step_time_bands_yaml(report).find("framework: generic, version: \"1\", device: a100-sxm-80, rows: 11, p90: 0.090, repeats: 11, repeat: 0.000}") != std::string::npos);
  // Runs of one configuration at 0.9, 1.0 and 1.1 s: two of three are 10 % from their mean, on average 6.7 %. One alone has no like.
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    report.rows[i].strategy = "dp" + std::to_string(i / 3);
    report.rows[i].measured_step_time_s = i < 9 ? 0.9 + 0.1 * static_cast<double>(i % 3) : 1.0;
  }
  report.rows.back().strategy = "alone";
  report.rows[9].strategy = "alone too";
  CHECK(step_time_bands_yaml(report).find("repeats: 9, repeat: 0.067}") != std::string::npos);
  report.rows.resize(4);
  CHECK(step_time_bands_yaml(report).find("rows: ") == std::string::npos);  // too few
}
