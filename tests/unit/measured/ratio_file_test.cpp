// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "files.hpp"
#include "nd/compare.hpp"
#include "nd/version.hpp"

namespace {

using nd::testing::TextFile;

constexpr const char* kKeys = R"("COMPUTE":0.9,"DP_COMM":1.1,"DP_REDUCE":1.2,"MP_COMM":1,"EP_COMM":1,"CP_COMM":1,"PP_COMM":1.3,"BUBBLE":1.3)";

std::string refusal(const std::string& text) {
  const TextFile file("ratios.json", text);
  const auto ratios = nd::read_ratios(file.path());
  if (ratios) return {};
  std::string out;
  for (const auto& problem : ratios.error().diagnostics) out += nd::to_text(problem) + "\n";
  return out;
}

nd::Scenario scenario() {
  nd::Scenario out;
  out.model.name = "m";
  out.cluster.device.name = "ascend-a3";
  out.profile.name = "megatron-core";
  out.profile.version = "0.12";
  return out;
}

nd::CalibrationRatios fitted_here() {
  nd::CalibrationRatios ratios;
  for (auto& value : ratios.value) value = 1.5;
  const auto print = nd::fingerprint(scenario());
  ratios.fitted_on = {"m.csv", 4, {"dp8", "tp2"}, "ascend-a3", "m", "megatron-core 0.12", nd::kVersion, std::string(nd::kRatioUnit), print.device, print.model, print.framework, "per_part"};
  return ratios;
}

std::string warnings(const nd::CalibrationRatios& ratios, const nd::Scenario& now) {
  std::string out;
  for (const auto& warning : nd::check_calibration(ratios, now, {"r.json", 0, 0, "-c"})) out += nd::to_text(warning) + "\n";
  return out;
}

}  // namespace

TEST_CASE("a calibration file written is the one read", "[measured]") {
  const nd::CalibrationRatios ratios = fitted_here();
  const TextFile file("ratios.json", nd::ratios_json(ratios));
  const auto read = nd::read_ratios(file.path());
  REQUIRE(read);
  CHECK(*read == ratios);
}

TEST_CASE("files of another unit are recognised and refused with the reason", "[measured]") {
  using Catch::Contains;
  const std::string unit = R"("_fitted_on":{"unit":"measured/estimated"})";
  CHECK(refusal("{" + std::string(kKeys) + "," + unit + "}").empty());
  // The predecessor's: milliseconds per unit of its score.
  CHECK_THAT(refusal("{" + std::string(kKeys) + R"(,"_fitted_on":{"csv":"a.csv","strategies":"DP 64 EP 2"}})"), Contains("milliseconds per unit of their own score"));
  CHECK_THAT(refusal("{" + std::string(kKeys) + "}"), Contains("does not say that its ratios are measured/estimated"));
  CHECK_THAT(refusal("{" + std::string(kKeys) + R"(,"_fitted_on":{"unit":"ms"}})"), Contains("ratios in 'ms'"));
  std::string tiny = kKeys;
  tiny.replace(tiny.find("0.9"), 3, "3e-9");
  CHECK_THAT(refusal("{" + tiny + "," + unit + "}"), Contains("COMPUTE: 3e-09 is no ratio"));
  CHECK_THAT(refusal("{\"COMPUTE\":1," + unit + "}"), Contains("DP_COMM"));
  CHECK_THAT(refusal("{" + std::string(kKeys) + ",\"COMPUT\":1," + unit + "}"), Contains("did you mean 'COMPUTE'"));
  std::string negative = kKeys;
  negative.replace(negative.find("0.9"), 3, "-1");
  CHECK_THAT(refusal("{" + negative + "," + unit + "}"), Contains("not negative"));
  CHECK_THAT(refusal("[]"), Contains("one JSON object"));
  CHECK_THAT(refusal("{"), Contains("not a JSON document"));
  CHECK_FALSE(nd::read_ratios("/nowhere/ratios.json"));
}

TEST_CASE("ratios fitted on something else, or before something changed, are applied with a warning", "[measured]") {
  using Catch::Contains;
  const nd::CalibrationRatios ratios = fitted_here();
  CHECK(warnings(ratios, scenario()).empty());
  auto other = scenario();
  other.cluster.device.name = "ascend-a2";
  CHECK_THAT(warnings(ratios, other), Contains("fitted on device ascend-a3, this is ascend-a2"));
  auto stale = scenario();
  stale.cluster.device.compute.gemm_fraction *= 1.01;
  CHECK_THAT(warnings(ratios, stale), Contains("the device file of ascend-a3 has changed"));
  auto trainer = scenario();
  trainer.profile.time.step_overhead_ms += 1;
  CHECK_THAT(warnings(ratios, trainer), Contains("the profile of megatron-core has changed"));
  auto model = scenario();
  model.model.hidden_size = 7;
  CHECK_THAT(warnings(ratios, model), Contains("the model m has changed"));
  auto old = ratios;
  old.fitted_on.estimator_version = "0.0.1";
  CHECK_THAT(warnings(old, scenario()), Contains("estimator version 0.0.1"));
  auto abstained = ratios;
  abstained.fitted_on.method = "none";
  CHECK_THAT(warnings(abstained, scenario()), Contains("abstained"));
  // Fitted on several devices: any of them is fine.
  auto several = ratios;
  several.fitted_on.device = "ascend-a2, ascend-a3";
  several.fitted_on.device_digest.clear();
  CHECK(warnings(several, scenario()).empty());
}
