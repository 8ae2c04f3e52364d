// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "nd/study.hpp"
#include "support/scenarios.hpp"

namespace nd {
namespace {

/// The small dense model, batch 48, on any number of devices; 7 is refused.
Result<StudyCase> at(std::int64_t devices) {
  if (devices == 7) return make_error(Errc::conflict, {}, "seven is unlucky", "take eight");
  StudyCase out;
  out.name = std::to_string(devices);
  out.scenario = testing::make_scenario(testing::small_dense(), {.devices = devices, .global_batch = 48, .seq_length = 512});
  return out;
}

std::vector<std::int64_t> sizes(const Study& study) {
  std::vector<std::int64_t> out;
  for (const auto& row : study.rows) out.push_back(row.devices);
  return out;
}

}  // namespace

TEST_CASE("Sizes double, go in steps, and always end at the last", "[study]") {
  using Sizes = std::vector<std::int64_t>;
  CHECK(sizes(size_cluster({}, {.least = 2, .most = 16}, {.at = at}, {})) == Sizes{2, 4, 8, 16});
  CHECK(sizes(size_cluster({}, {.least = 2, .most = 12}, {.at = at}, {})) == Sizes{2, 4, 8, 12});
  CHECK(sizes(size_cluster({}, {.least = 4, .most = 12, .step = 4}, {.at = at}, {})) == Sizes{4, 8, 12});
  CHECK(sizes(size_cluster({}, {.least = 8, .most = 8}, {.at = at}, {})) == Sizes{8});
}

TEST_CASE("A size that cannot be searched is a row with its reason", "[study]") {
  const auto study = size_cluster({}, {.least = 6, .most = 8, .step = 1}, {.at = at}, {});
  REQUIRE(study.rows.size() == 3);
  CHECK(study.rows[1].problem == "seven is unlucky (take eight)");
  CHECK_FALSE(study.rows[1].best);
  CHECK(study.rows[2].best);
}

TEST_CASE("Days, device-hours and cost follow from tokens per second", "[study]") {
  const auto study = size_cluster({}, {.least = 4, .most = 4}, {.at = at}, 2.5);
  const auto& row = study.rows.front();
  REQUIRE(row.best);
  // 48 sequences of 512 tokens a step.
  CHECK(row.tokens_per_second() == Approx(48 * 512 / row.best->time.step.value));
  const double tokens = 1e9;
  CHECK(row.days(tokens) == Approx(tokens / row.tokens_per_second() / 86400));
  CHECK(row.device_hours(tokens) == Approx(row.days(tokens) * 24 * 4));
  CHECK(*row.cost(tokens) == Approx(2.5 * row.device_hours(tokens)));
}

TEST_CASE("The answer is the smallest that meets the deadline, and a closer look finds smaller ones", "[study]") {
  const auto plain = size_cluster({}, {.least = 2, .most = 16}, {.at = at}, {});
  REQUIRE(plain.rows.size() == 4);
  for (const auto& row : plain.rows) REQUIRE(row.best);
  CHECK_FALSE(plain.answer);
  Study asked;
  asked.tokens = 1e9;
  // 8 devices meet it with room, 4 do not: the answer is 8 or something between.
  asked.deadline_days = 0.5 * (plain.rows[1].days(1e9) + plain.rows[2].days(1e9));
  const auto study = size_cluster(asked, {.least = 2, .most = 16, .step = 0, .node_devices = 2}, {.at = at}, {});
  REQUIRE(study.answer);
  const auto& answer = study.rows[*study.answer];
  CHECK(answer.devices > 4);
  CHECK(answer.devices <= 8);
  CHECK(answer.days(1e9) <= *asked.deadline_days);
  for (std::size_t i = 0; i < *study.answer; ++i) CHECK((!study.rows[i].best || study.rows[i].days(1e9) > *asked.deadline_days));
  CHECK(std::is_sorted(study.rows.begin(), study.rows.end(), [](const StudyRow& a, const StudyRow& b) { return a.devices < b.devices; }));
  // 6 = whole nodes of 2 between 4 and 8 was looked at.
  const auto all = sizes(study);
  CHECK(std::find(all.begin(), all.end(), 6) != all.end());
}

TEST_CASE("A study that is over in the middle is not complete", "[study]") {
  int searches = 0;
  const SizeCases cases{.at = [&searches](std::int64_t devices) {
                          ++searches;
                          return at(devices);
                        },
                        .over = [&searches] { return searches == 2; }};
  const auto study = size_cluster({}, {.least = 2, .most = 16}, cases, {});
  CHECK(sizes(study) == std::vector<std::int64_t>{2, 4});
  CHECK_FALSE(study.complete);
  CHECK(size_cluster({}, {.least = 2, .most = 16}, {.at = at}, {}).complete);
}

TEST_CASE("A deadline that no cluster meets has no answer", "[study]") {
  Study asked;
  asked.tokens = 1e15;
  asked.deadline_days = 0.001;
  CHECK_FALSE(size_cluster(asked, {.least = 2, .most = 8}, {.at = at}, {}).answer);
}

}  // namespace nd
