// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "folder.hpp"
#include "nd/campaign.hpp"
#include "nd/formats.hpp"

namespace {

using nd::testing::Folder;

const std::string kHead = "rank,tp,pp,cp,dp,ep,etp,sp,mbs,mb,vpp,schedule,zero,op,recompute,gbs,step_time_s,memory_gib\n";
const std::string kBase = std::string(ND_TEST_DATA_DIR) + "/examples/torchtitan/llama3_8b.toml";
const nd::DataStore kData(ND_TEST_DATA_DIR);

}  // namespace

TEST_CASE("candidates of a ranking are written into the configuration", "[candidates]") {
  const Folder folder("ranking");
  nd::CandidateRequest request;
  request.base = kBase;
  request.device = "H100";
  // The second has context parallelism: its algorithm is no column of a ranking, it is the configuration's.
  request.ranking = folder.write("r.csv", kHead + "1,1,1,1,8,1,1,off,1,1,1,1f1b,3,8,off,8,1.06,76.4\n2,1,1,2,4,1,1,off,2,1,1,1f1b,3,8,off,8,1.07,77.1\n"
                                                  "3,1,1,2,4,1,1,off,1,2,1,1f1b,3,8,off,8,1.08,70.1\n4,2,1,1,4,1,1,on,1,2,1,1f1b,3,4,full,8,1.09,60\n");
  request.top = 4;
  const auto plan = nd::plan_candidates(request, kData);
  if (!plan)
    for (const auto& one : plan.error().diagnostics) UNSCOPED_INFO(nd::to_text(one));
  REQUIRE(plan.has_value());
  REQUIRE(plan->runs.size() == 4);  // also what is skipped stays its own run
  const std::vector<std::int64_t> tp{1, 1, 1, 2}, cp{1, 2, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& run = plan->runs[i];
    INFO(run.name << " " << run.skip);
    REQUIRE(run.skip.empty());
    CHECK(run.devices == 8);
    REQUIRE(run.files.size() == 1);
    CHECK(run.files[0].name == "config.toml");
    const auto back = nd::read_request(folder.write("back.toml", run.files[0].text), "", kData, {.devices = 8});
    REQUIRE(back.has_value());
    CHECK(back->run.tp.value_or(1) == tp[i]);
    CHECK(back->run.cp.value_or(1) == cp[i]);
  }
  CHECK(plan->runs[0].predicted_step_s == 1.06);
  CHECK(plan->log_profile == "torchtitan");
  request.top = 2;
  request.diverse = true;
  const auto diverse = nd::plan_candidates(request, kData);
  REQUIRE(diverse.has_value());
  CHECK(diverse->runs[1].name.substr(0, 5) == "rank2");  // other degrees than rank 1
  request.top = 3;
  CHECK(nd::plan_candidates(request, kData)->runs[2].name.substr(0, 5) == "rank4");  // rank 3 has the degrees of rank 2
}

TEST_CASE("a ranking without a dimension, without candidates or for a bare model is refused", "[candidates]") {
  const Folder folder("badranking");
  nd::CandidateRequest request;
  request.base = kBase;
  request.device = "H100";
  request.ranking = folder.write("r.csv", "rank,tp\n1,2\n");
  CHECK_FALSE(nd::plan_candidates(request, kData).has_value());
  request.ranking = folder.write("e.csv", kHead);
  CHECK_FALSE(nd::plan_candidates(request, kData).has_value());
  request.ranking = folder.write("v.csv", kHead + "1,one,1,1,8,1,1,off,1,1,1,1f1b,3,8,off,8,1.06,76.4\n");
  CHECK_FALSE(nd::plan_candidates(request, kData).has_value());
  request.ranking = folder.write("g.csv", kHead + "1,1,1,1,8,1,1,off,1,1,1,1f1b,3,8,off,8,1.06,76.4\n");
  request.base = std::string(ND_TEST_DATA_DIR) + "/models/" + kData.model_names().value().front() + "/config.json";
  CHECK_FALSE(nd::plan_candidates(request, kData).has_value());
}
