// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "folder.hpp"
#include "harness/digest.hpp"
#include "harness/launcher.hpp"
#include "nd/campaign.hpp"

namespace {

using nd::testing::Folder;

const char* const kCampaign =
    "schema: nd/campaign/1\nname: demo\npython: python3\nprogram: [train.py]\nlauncher: local\nlog_profile: torchtitan\n"
    "arguments: {tp: \"{tp}\", lr: 1e-4, fused: true, slow: false, nothing: null, layers: [1, 2]}\n"
    "matrix: {tp: [1, 2], devices: [1, 2]}\nzip: [{mbs: [1, 2], mb: [4, 2]}]\n"
    "exclude: [{tp: 2, devices: 1}]\nwhen: [{if: {tp: 2}, set: {sp: \"on\"}}, {if: {tp: 1}, set: {sp: \"off\"}}]\n"
    "environment: {SP: \"{sp}\"}\nfacts: {gbs: 4}\nfiles: {run.toml: \"mbs = {mbs}\\nmb = {mb}\\ndir = {run_dir}\\n\"}\n";

std::string refused(const Folder& folder, const std::string& text) {
  const auto plan = nd::read_campaign(folder.write("bad.yaml", text));
  REQUIRE_FALSE(plan.has_value());
  std::string out;
  for (const auto& one : plan.error().diagnostics) out += nd::to_text(one) + "\n";
  return out;
}

}  // namespace

TEST_CASE("SHA-256 of the examples of FIPS 180-4", "[campaign]") {
  CHECK(nd::harness::sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(nd::harness::sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(nd::harness::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("matrix, zip, exclude and when", "[campaign]") {
  const Folder folder("campaign");
  const auto plan = nd::read_campaign(folder.write("c.yaml", kCampaign));
  REQUIRE(plan.has_value());
  // tp x devices without (2, 1) = 3, times 2 pairs of (mbs, mb).
  REQUIRE(plan->runs.size() == 6);
  const auto& last = plan->runs.back();
  CHECK(last.name == "tp2-devices2-mb2-mbs2");
  CHECK(last.devices == 2);
  CHECK(last.environment == nd::NamedTexts{{"SP", "on"}});
  CHECK(plan->runs.front().environment == nd::NamedTexts{{"SP", "off"}});
  CHECK(last.files.front().text == "mbs = 2\nmb = 2\ndir = {run_dir}\n");
  const std::vector<nd::RunArgument> wanted{{"tp", {"2"}}, {"lr", {"1e-4"}}, {"fused", {}}, {"layers", {"1", "2"}}};
  CHECK(last.arguments == wanted);
  CHECK(nd::check_campaign(*plan, nd::DataStore(ND_TEST_DATA_DIR)).empty());
}

TEST_CASE("a plan reads back unchanged and knows when it was changed by hand", "[campaign]") {
  const Folder folder("plan");
  auto plan = nd::read_campaign(folder.write("c.yaml", kCampaign));
  REQUIRE(plan.has_value());
  plan->runs[0].predicted_step_s = 0.1;
  plan->runs[1].skip = "not now";
  plan->notes.clear();
  nd::identify_runs(*plan);
  const auto again = nd::parse_plan(nd::plan_json(*plan), "plan.json");
  REQUIRE(again.has_value());
  CHECK(*again == *plan);
  plan->runs[0].arguments[0].values = {"7"};
  const auto problems = nd::check_campaign(*plan, nd::DataStore(ND_TEST_DATA_DIR));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].message == "has an id that is not its own: the plan was changed by hand");
}

TEST_CASE("identity: what is run, not how it is written down", "[campaign]") {
  nd::Campaign campaign;
  campaign.program = {"train.py"};
  nd::PlannedRun run;
  run.name = "a";
  run.arguments = {{"lr", {"1e-4"}}, {"tp", {"2"}}};
  nd::PlannedRun same = run;
  same.name = "b";
  same.arguments = {{"tp", {"2"}}, {"lr", {"0.0001"}}};
  same.facts = {{"note", "x"}};
  CHECK(nd::run_identity(campaign, run) == nd::run_identity(campaign, same));
  std::set<std::string> ids{nd::run_identity(campaign, run)};
  const auto differs = [&](const nd::Campaign& c, const nd::PlannedRun& r) { CHECK(ids.insert(nd::run_identity(c, r)).second); };
  auto other = run;
  other.arguments[0].values = {"2e-4"};
  differs(campaign, other);
  other = run;
  other.arguments = {{"lr", {"1e-4", "2"}}, {"tp", {}}};
  differs(campaign, other);
  other = run;
  other.devices = 2;
  differs(campaign, other);
  other = run;
  other.environment = {{"A", "1"}};
  differs(campaign, other);
  other = run;
  other.files = {{"f", "text"}};
  differs(campaign, other);
  auto elsewhere = campaign;
  elsewhere.launcher = "torchrun";
  differs(elsewhere, run);
  campaign.runs = {run, same};
  nd::identify_runs(campaign);
  CHECK(campaign.runs.size() == 1);
  CHECK(campaign.notes.size() == 1);
}

TEST_CASE("mistakes of a campaign file are found before anything starts", "[campaign]") {
  const Folder folder("bad");
  const std::string head = "schema: nd/campaign/1\nprogram: [t.py]\n";
  CHECK(refused(folder, head + "arguments: {a: \"{tpp}\"}\nmatrix: {tp: [1]}\n").find("there is no variable 'tpp' (did you mean 'tp'?)") != std::string::npos);
  CHECK(refused(folder, head + "matrix: {tp: [1, 2]}\n").find("'tp' varies, but nothing uses it") != std::string::npos);
  CHECK(refused(folder, head + "arguments: {a: \"{x}{y}\"}\nzip: [{x: [1, 2], y: [1]}]\n").find("has 1 values, the others of the group have 2") != std::string::npos);
  CHECK(refused(folder, head + "arguments: {a: \"{x}\"}\nmatrix: {x: [1]}\nexclude: [{x: 1}]\n").find("leaves no run") != std::string::npos);
  CHECK(refused(folder, head + "limits: {total: 10 parsecs}\nprogam: x\n").find("must be a time like") != std::string::npos);
  CHECK(refused(folder, head + "arguments: {a: \"{x}\"}\nwhen: [{if: {y: 1}, set: {x: 1}}]\nmatrix: {y: [1, 2]}\n").find("has no value for 'x'") != std::string::npos);
}

TEST_CASE("every launcher of the data folder makes a command", "[launcher]") {
  nd::Campaign campaign;
  campaign.program = {"train script.py"};
  nd::PlannedRun run;
  run.devices = 4;
  run.arguments = {{"a", {"it's"}}};
  const nd::DataStore data(ND_TEST_DATA_DIR);
  for (const char* name : {"local", "torchrun", "accelerate", "msrun", "mpirun", "srun", "sbatch"}) {
    INFO(name);
    const auto launcher = nd::harness::read_launcher(name, data);
    if (!launcher)
      for (const auto& one : launcher.error().diagnostics) UNSCOPED_INFO(nd::to_text(one));
    REQUIRE(launcher.has_value());
    const auto launch = nd::harness::make_launch(*launcher, campaign, run, {"/run", {"0", "1", "2", "3"}, 1234});
    REQUIRE(launch.has_value());
    const auto& words = launch->command;
    CHECK(std::find(words.begin(), words.end(), "train script.py") != words.end());
    CHECK(words.back() == "it's");
    CHECK(std::find(words.begin(), words.end(), "") == words.end());
    for (const auto& word : words) CHECK(word.find('{') == std::string::npos);
    CHECK((!launcher->batch() || launch->script.find("'it'\\''s'") != std::string::npos));
  }
  const auto torchrun = nd::harness::make_launch(*nd::harness::read_launcher("torchrun", data), campaign, run, {"/run", {"0"}, 1234});
  CHECK(std::find(torchrun->command.begin(), torchrun->command.end(), "--nproc-per-node=4") != torchrun->command.end());
  campaign.launcher_options = {{"devices_per_node", "3"}};
  CHECK_FALSE(nd::harness::make_launch(*nd::harness::read_launcher("srun", data), campaign, run, {"/run", {}, 1}).has_value());
  campaign.launcher_options = {{"partitoin", "x"}};
  CHECK_FALSE(nd::harness::make_launch(*nd::harness::read_launcher("sbatch", data), campaign, run, {"/run", {}, 1}).has_value());
}
