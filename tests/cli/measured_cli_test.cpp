// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cstdint>
#include <fstream>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;

const std::string kSample = std::string(ND_TEST_SOURCE_DIR) + "/data/measured/sample.csv";
const std::string kRun = "-y llama-3.1-8b -d 16 -A A3 -b 128 --seq-length 4096";

}  // namespace

TEST_CASE("Measured runs: compared, fitted, written, applied") {
  const Folder folder("measured");
  const auto compared = run_nd("--real_csv " + kSample + " -o " + folder.path("out"));
  INFO(compared.err);
  CHECK(compared.status == 0);
  CHECK_THAT(compared.out, Contains("measured runs") && Contains("step time:") && Contains("following the estimate costs"));
  for (const char* file : {"sample_estimates.csv", "sample_comparison.json", "sample_comparison.html", "sample_bars.svg", "sample_scatter.svg", "sample_residuals.svg"})
    CHECK_FALSE(read_file(folder.path("out/" + std::string(file))).empty());

  const std::string steps = folder.write("steps.csv", "DP,TP,MBS,time_s,peak_mem_gib\n8,2,1,9.0,30\n4,4,1,9.8,31\n2,8,1,11,30\n16,1,1,8.7,40\n3,1,1,5,1\n");
  const std::string ratios = folder.path("ratios.json");
  const auto fitted = run_nd(kRun + " --real_csv " + steps + " --write_ratios " + ratios);
  INFO(fitted.err << fitted.out);
  CHECK(fitted.status == 0);
  CHECK_THAT(fitted.out, Contains("line 6:") && Contains("COMPUTE"));
  const auto applied = run_nd(kRun + " --real_csv " + steps + " -c " + ratios);
  CHECK(applied.status == 0);
  const auto searched = run_nd(kRun + " -c " + ratios);
  CHECK(searched.status == 0);
  CHECK_THAT(searched.out, Contains("step times are multiplied part by part"));
  CHECK_THAT(run_nd("-y llama-3.1-8b -d 16 -A A2 -c " + ratios).out, Contains("the ratios were fitted on device"));
}

TEST_CASE("A calibration file that is not there, or of another unit, stops the run") {
  const Folder folder("calibration");
  const auto missing = run_nd(kRun + " -c " + folder.path("nowhere.json"));
  CHECK(missing.status == 3);
  CHECK_THAT(missing.err, Contains("nowhere.json"));
  const auto other = run_nd(kRun + " -c " +
                            folder.write("old.json", R"({"COMPUTE":3e-9,"DP_COMM":1e-9,"DP_REDUCE":1e-9,"MP_COMM":1e-9,"EP_COMM":1e-9,"CP_COMM":1e-9,"PP_COMM":1e-9,"BUBBLE":1e-9,"_fitted_on":{"csv":"a.csv"}})"));
  CHECK(other.status == 3);
  CHECK_THAT(other.err, Contains("milliseconds per unit of their own score"));
}

TEST_CASE("Options that measured runs cannot honour are refused") {
  const Folder folder("refused");
  const auto status = [](const std::string& options, int wanted, const std::string& text) {
    const auto outcome = run_nd(options);
    INFO(options << "\n" << outcome.err);
    CHECK(outcome.status == wanted);
    CHECK_THAT(outcome.err, Contains(text));
  };
  status("--real_csv " + kSample + " -d 8", 2, "-d: cannot be combined with a table of measured runs");
  status("--real_csv " + kSample + " --explain 1", 2, "cannot be combined with");
  status("--write_ratios " + folder.path("r.json"), 2, "--write_ratios: needs --real_csv");
  status("--real_csv " + folder.write("steps.csv", "DP,time\n8,1\n"), 2, "-y: is missing");
  status("--real_csv " + folder.path("nowhere.csv"), 3, "nowhere.csv");
  status(kRun + " --real_csv " + folder.write("bad.csv", "DP,tme\n8,1\n"), 3, "time: the column is missing");
  status("-V " + folder.path("nowhere"), 3, "nowhere");
  status("--census " + folder.write("c.json", R"({"schema":"nd/census/1","tensors":{}})"), 2, "does not say which model");
}

TEST_CASE("A census that differs: status 1; one that agrees: 0") {
  const Folder folder("census");
  const auto wrong = run_nd("-m llama-3.1-8b --census " + folder.write("c.json", R"({"schema":"nd/census/1","tensors":{"model.embed_tokens.weight":{"dtype":"BF16","shape":[128256,4096]}}})"));
  INFO(wrong.err);
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.out, Contains("tensors of the model that the checkpoint has not (290)") && Contains("model.layers.0.self_attn.q_proj.weight"));
}

}  // namespace nd::testing
