// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "unit/layout/replay_support.hpp"

namespace {

using nd::Schedule;
using nd::ScheduleShape;
using nlohmann::json;

struct Interval {
  double start, end;
  std::string name, category;
};

/// Complete events per track name.
std::map<std::string, std::vector<Interval>> tracks(const json& trace) {
  std::map<int, std::string> names;
  for (const auto& event : trace["traceEvents"])
    if (event["name"] == "thread_name") names[event["tid"].get<int>()] = event["args"]["name"].get<std::string>();
  std::map<std::string, std::vector<Interval>> out;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      const double start = event["ts"].get<double>();
      out[names.at(event["tid"].get<int>())].push_back({start, start + event["dur"].get<double>(),
                                                        event["name"].get<std::string>(),
                                                        event["cat"].get<std::string>()});
    }
  return out;
}

nd::ReplayResult replayed(Schedule schedule, const ScheduleShape& shape) {
  const auto& row = nd::layout::schedule_row(schedule);
  auto times = nd::test::equal_times(row, shape, {0.01, 0.012, 0.009, 0.031});
  const std::vector<nd::Seconds> hop{{0.002}};
  return nd::replay_schedule(schedule, {.shape = shape, .times = times, .hop = hop, .timeline = true});
}

/// Neighbouring places of the model that lie on different stages, over all its copies. The turn of a V lies on one
/// stage.
int crossings(const nd::layout::ScheduleRow& row, const ScheduleShape& shape) {
  int found = 0;
  const int chunks = row.local_chunks(shape);
  for (int from = 0; from < shape.stages; ++from)
    for (int to = 0; to < shape.stages; ++to)
      for (int a = 0; a < chunks; ++a)
        for (int b = 0; b < chunks; ++b)
          if (from != to && (row.model_copies == 1 || a == b) &&
              row.position(shape, from, a) + 1 == row.position(shape, to, b))
            ++found;
  return found;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace

TEST_CASE("the trace parses back: every pass once, none crossing on its track", "[layout][replay]") {
  for (const auto& row : nd::layout::schedule_table()) {
    ScheduleShape shape{4, 1, 8, row.takes_parts ? 2 : 1, 0};
    if (nd::layout::why_invalid(row, shape)) shape.chunks = 2;
    const auto result = replayed(row.id, shape);
    REQUIRE(result.ok());
    const auto parsed = tracks(json::parse(nd::trace_json(result, "a \"title\"\n")));
    std::map<std::string, int> kinds;
    int transfers = 0;
    for (auto [track, intervals] : parsed) {
      std::sort(intervals.begin(), intervals.end(),
                [](const Interval& a, const Interval& b) { return a.start < b.start; });
      for (std::size_t n = 1; n < intervals.size(); ++n) REQUIRE(intervals[n].start >= intervals[n - 1].end - 1e-6);
      for (const auto& interval : intervals) {
        ++kinds[interval.category];
        transfers += interval.category == "p2p" ? 1 : 0;
      }
    }
    // p m v forwards; as many backwards, whole or in two halves
    const int each = row.positions(shape) * shape.units();
    INFO(row.name);
    CHECK(kinds["forward"] == each);
    CHECK(kinds["backward"] + kinds["backward input"] == each);
    CHECK(kinds["backward weight"] == kinds["backward input"]);
    CHECK(transfers * row.model_copies == 2 * crossings(row, shape) * shape.units());
  }
}

TEST_CASE("two or three passes per micro-batch, chunk and stage", "[layout][replay]") {
  const auto passes = [](Schedule schedule, const ScheduleShape& shape) {
    return static_cast<int>(replayed(schedule, shape).timeline.size());
  };
  CHECK(passes(Schedule::one_f_one_b, {4, 1, 8, 1, 0}) == 4 * 8 * 2);
  CHECK(passes(Schedule::interleaved, {4, 3, 8, 1, 0}) == 4 * 8 * 3 * 2);
  CHECK(passes(Schedule::zb_h1, {4, 1, 8, 1, 0}) == 4 * 8 * 3);
  CHECK(passes(Schedule::zb_v, {4, 2, 8, 1, 0}) == 4 * 8 * 2 * 3);
}

TEST_CASE("the trace names tracks, passes and transfers", "[layout][replay]") {
  const auto trace = json::parse(nd::trace_json(replayed(Schedule::interleaved, {2, 2, 2, 1, 0}), "step of \\ \"x\""));
  std::set<std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    names.insert(event["name"].get<std::string>());
    if (event["name"] == "process_name") CHECK(event["args"]["name"] == "step of \\ \"x\"");
  }
  CHECK(names.count("F2.1") == 1);
  CHECK(names.count("B1.2") == 1);
  CHECK(names.count("activation for F1.2") == 1);
  CHECK(names.count("gradient for B2.1") == 1);
  const auto parsed = tracks(trace);
  REQUIRE(parsed.count("stage 0") == 1);
  REQUIRE(parsed.count("stage 1 receives") == 1);
  // F1.1 takes 10 ms from 0, its output reaches stage 1 2 ms later; times in microseconds.
  CHECK(parsed.at("stage 0")[0].name == "F1.1");
  CHECK(parsed.at("stage 0")[0].end == Approx(10000));
  CHECK(parsed.at("stage 1 receives")[0].name == "activation for F1.1");
  CHECK(parsed.at("stage 1 receives")[0].end == Approx(12000));
}

TEST_CASE("the timeline has a row per stage, a legend and an axis", "[layout][replay]") {
  const std::string svg = nd::timeline_svg(replayed(Schedule::zb_h1, {4, 1, 8, 1, 0}), "1 < 2 & 3");
  CHECK(svg.rfind("<svg ", 0) == 0);
  CHECK(svg.find("</svg>") != std::string::npos);
  CHECK(svg.find("1 &lt; 2 &amp; 3") != std::string::npos);
  CHECK(count(svg, "font-weight=\"bold\">stage ") == 4);
  for (const char* text : {"forward (F)", "backward, input half (Bi)", "backward, weight half (W)", "receiving",
                           "waiting", "time from the start of the step (ms)", "holds at most"})
    CHECK(svg.find(text) != std::string::npos);
  CHECK(svg.find("recompute") == std::string::npos);
  CHECK(count(svg, "<svg") == count(svg, "</svg>"));
  CHECK(count(svg, "<text") == count(svg, "</text>"));
  CHECK(count(svg, "<g") == count(svg, "</g>"));
  // A label per block: 4 stages, 8 micro-batches, 3 passes, all wide enough.
  CHECK(count(svg, "<text") >= 4 * 8 * 3);
  CHECK(nd::timeline_svg(replayed(Schedule::dualpipe, {4, 1, 8, 1, 0}), "x").find("forward and backward overlapped") !=
        std::string::npos);
  CHECK(nd::timeline_svg(nd::ReplayResult{}, "nothing").find("</svg>") != std::string::npos);
}

// Texts that start at x and run to the right are about 6.2 px a letter wide at 11 px.
TEST_CASE("nothing of a timeline lies outside of it, also with every kind of pass and several chunks", "[layout][replay]") {
  const auto number = [](const std::string& text, std::size_t at) { return std::stod(text.substr(at, text.find('"', at) - at)); };
  for (const auto& [schedule, shape] : {std::pair{Schedule::dualpipe, ScheduleShape{4, 1, 12, 1, 0}},
                                        std::pair{Schedule::interleaved, ScheduleShape{2, 16, 4, 1, 0}},
                                        std::pair{Schedule::zb_v, ScheduleShape{4, 2, 8, 1, 0}},
                                        std::pair{Schedule::one_f_one_b, ScheduleShape{4, 1, 8, 1, 0}}}) {
    const std::string svg = nd::timeline_svg(replayed(schedule, shape), "x");
    const std::string before = " width=\"";
    const double width = number(svg, svg.find(before) + before.size());
    int texts = 0, outside = 0;
    const std::string open = "<text x=\"";
    for (std::size_t at = svg.find(open); at != std::string::npos; at = svg.find(open, at + 1), ++texts) {
      const std::size_t close = svg.find('>', at), end = svg.find("</text>", at);
      const bool rightwards = svg.substr(at, close - at).find("text-anchor") == std::string::npos && number(svg, svg.find("y=\"", at) + 3) > 45;
      const double reach = rightwards ? 6.2 * static_cast<double>(end - close - 1) : 0.0;
      outside += number(svg, at + open.size()) + reach > width;
    }
    INFO(nd::to_text(schedule));
    CHECK(texts > 20);
    CHECK(outside == 0);
  }
  // One is no "micro-batches".
  const std::string svg = nd::timeline_svg(replayed(Schedule::one_f_one_b, {4, 1, 8, 1, 0}), "x");
  CHECK(svg.find(">1 micro-batch<") != std::string::npos);
  CHECK(svg.find(">4 micro-batches<") != std::string::npos);
}
