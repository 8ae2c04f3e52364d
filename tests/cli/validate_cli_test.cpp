// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;

const std::string kHeader = "source,model,hidden,layers,heads,vocab,seq_len,device,devices,dp,tp,pp,mbs,gbs,step_time_s\n";
const std::string kRow = "here,gpt-2b,2048,24,16,50257,2048,A100-80G-SXM,8,8,1,1,1,8,1.0\n";
const std::string kElsewhere = "here,gpt-2b,2048,24,16,50257,2048,Zeus-9000,8,8,1,1,1,8,1.0\n";

}  // namespace

TEST_CASE("nd_validate ends with 0 only when it priced something", "[cli]") {
  const Folder folder("validate_status");
  const std::string good = folder.write("good.csv", kHeader + kRow), none = folder.write("none.csv", kHeader + kElsewhere);
  CHECK(nd_validate({good}).status == 0);
  const Outcome nothing = nd_validate({none});
  CHECK(nothing.status == 3);
  CHECK_THAT(nothing.err, Contains("none of the 1 rows could be priced"));
  const Outcome both = nd_validate({good, none});
  CHECK(both.status == 0);
  CHECK_THAT(both.err, Contains("no device file is named 'Zeus-9000'"));
}

TEST_CASE("nd_validate refuses a table that is named twice", "[cli]") {
  const Folder folder("validate_twice");
  const std::string table = folder.write("rows.csv", kHeader + kRow), other = folder.path("./rows.csv");
  for (const std::string& again : {table, other}) {
    const Outcome outcome = nd_validate({table, again});
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains("are the same table"));
    CHECK(outcome.out.empty());
  }
}

}  // namespace nd::testing
