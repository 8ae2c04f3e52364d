// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "nd/calibration.hpp"

namespace {

nd::SweepPoint point(std::string strategy, double measured, double predicted) {
  nd::SweepPoint out;
  out.source = "table";
  out.model = "gpt";
  out.device = "A100";
  out.devices = 64;
  out.gbs = 512;
  out.seq_len = 2048;
  out.strategy = std::move(strategy);
  out.measured = measured;
  out.predicted = predicted;
  return out;
}

}  // namespace

TEST_CASE("a sweep needs four strategies", "[calibration]") {
  std::vector<nd::SweepPoint> points{point("a", 1, 1), point("b", 2, 2), point("c", 3, 3), point("c", 3, 3)};
  CHECK(nd::find_sweeps(points).empty());  // c twice is a repeat
  points.push_back(point("d", 4, 4));
  const auto sweeps = nd::find_sweeps(points);
  REQUIRE(sweeps.size() == 1);
  CHECK(sweeps[0].n == 4);
  CHECK(*sweeps[0].spearman == Approx(1.0));
  CHECK(sweeps[0].regret == 0.0);
}

TEST_CASE("regret is what the predicted best costs over the measured best", "[calibration]") {
  // predicted best is b (measured 1.25), measured best is a (1.0)
  const auto sweeps = nd::find_sweeps({point("a", 1.0, 2.0), point("b", 1.25, 1.5), point("c", 3, 3), point("d", 4, 4)});
  REQUIRE(sweeps.size() == 1);
  CHECK(sweeps[0].regret == Approx(0.25));
  CHECK(sweeps[0].predicted_best == "b");
  CHECK(sweeps[0].measured_best == "a");
  CHECK(sweeps[0].best_of_three == 0.0);  // b, a and c are tried
  // The measured best is predicted last of four: the three tried cost 10, 20 and 30 % more.
  const auto last = nd::find_sweeps({point("a", 1.0, 9.0), point("b", 1.3, 1), point("c", 1.2, 2), point("d", 1.1, 3)});
  CHECK(last[0].regret == Approx(0.3));
  CHECK(last[0].best_of_three == Approx(0.1));
  CHECK(sweeps[0].measured_best == "a");
  // measured ranks 1 2 3 4, predicted 2 1 3 4: 1 - 6 * 2 / 60
  CHECK(*sweeps[0].spearman == Approx(0.8));
}

TEST_CASE("repeats count once, by their median", "[calibration]") {
  // a: 1, 2, 9 -> 2; b: 3. The predicted best a costs nothing although one repeat took 9.
  const auto sweeps = nd::find_sweeps(
      {point("a", 9, 1), point("a", 1, 1), point("a", 2, 1), point("b", 3, 2), point("c", 4, 3), point("d", 5, 4)});
  REQUIRE(sweeps.size() == 1);
  CHECK(sweeps[0].n == 4);
  CHECK(sweeps[0].regret == 0.0);
}

TEST_CASE("another batch, length, device or variant is another sweep", "[calibration]") {
  std::vector<nd::SweepPoint> points;
  for (const char* name : {"a", "b", "c", "d"}) {
    points.push_back(point(name, 1, 1));
    points.push_back(point(name, 1, 1));
    points.back().gbs = 256;
    points.push_back(point(name, 1, 1));
    points.back().variant = "fp8";
  }
  const auto sweeps = nd::find_sweeps(points);
  REQUIRE(sweeps.size() == 3);
  CHECK(sweeps[0].gbs == 256);
  CHECK(sweeps[1].variant.empty());
  CHECK(sweeps[2].variant == "fp8");
  CHECK_FALSE(sweeps[0].spearman);  // all times equal: no ranking to compare
}
