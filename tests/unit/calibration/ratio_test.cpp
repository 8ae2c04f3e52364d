// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "calibration/robust_ridge.hpp"
#include "nd/ratios.hpp"

namespace {

using nd::MeasuredColumn;
using nd::RatioKey;
using nd::RatioLevel;
using nd::RatioSample;
using nd::TimePart;
using Truth = std::array<double, nd::kMeasuredColumnCount>;

/// A column of a sample as its parts make it.
double column(const RatioSample& sample, MeasuredColumn which) {
  double sum = 0;
  for (std::size_t part = 0; part < nd::kTimePartCount; ++part)
    if (nd::covers(which, static_cast<TimePart>(part))) sum += sample.estimated[part];
  return sum;
}

struct Generator {
  std::mt19937_64 engine;
  explicit Generator(std::uint64_t seed) : engine(seed) {}
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); }
  /// A step of random parts whose measured columns are the estimates times `truth`, with relative noise.
  RatioSample sample(const Truth& truth, bool parts, double noise = 0) {
    RatioSample out;
    for (double& part : out.estimated) part = between(0.01, 1.0);
    for (std::size_t c = 0; c < nd::kMeasuredColumnCount; ++c) {
      const double measured = column(out, static_cast<MeasuredColumn>(c)) * truth[c] * (1.0 + between(-noise, noise));
      if (parts) out.columns[c] = measured;
      out.step += measured;
    }
    return out;
  }
};

bool finite(const nd::RatioFit& fit) {
  for (const auto& ratio : fit.ratios)
    if (!std::isfinite(ratio.ratio) || !std::isfinite(ratio.low) || !std::isfinite(ratio.high) || ratio.ratio < 0) return false;
  for (const auto& row : fit.rows)
    if (!std::isfinite(row.corrected) || !std::isfinite(row.left_out.value_or(0)) || !std::isfinite(row.busy)) return false;
  return std::isfinite(fit.error_before) && std::isfinite(fit.error_left_out.value_or(0)) && std::isfinite(fit.noise);
}

double ratio(const nd::RatioFit& fit, RatioKey key) { return fit.ratios[static_cast<std::size_t>(key)].ratio; }

bool remarked(const nd::RatioFit& fit, const std::string& text) {
  for (const auto& remark : fit.remarks)
    if (remark.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("ratios that made the data come back, from columns and from whole steps", "[ratios]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Generator generator(seed);
    Truth truth{};
    for (double& r : truth) r = generator.between(0.3, 3.0);
    for (const bool parts : {true, false}) {
      std::vector<RatioSample> samples;
      for (int i = 0; i < 24; ++i) samples.push_back(generator.sample(truth, parts));
      const nd::RatioFit fit = nd::fit_ratios(samples);
      INFO("seed " << seed << " parts " << parts);
      REQUIRE(fit.level == RatioLevel::per_part);
      const std::array<RatioKey, nd::kMeasuredColumnCount> keys{RatioKey::compute, RatioKey::dp_comm, RatioKey::dp_reduce, RatioKey::mp_comm,
                                                                RatioKey::ep_comm, RatioKey::cp_comm, RatioKey::pp_comm,   RatioKey::other};
      for (std::size_t c = 0; c < keys.size(); ++c) CHECK(ratio(fit, keys[c]) == Approx(truth[c]).epsilon(1e-6));
      CHECK(ratio(fit, RatioKey::bubble) == ratio(fit, RatioKey::pp_comm));
      CHECK(ratio(fit, RatioKey::optimizer) == ratio(fit, RatioKey::compute));
      CHECK(*fit.error_left_out < 1e-6);
      for (const auto& row : fit.rows) CHECK(row.corrected == Approx(row.step).epsilon(1e-6));
    }
  }
}

TEST_CASE("left-out predictions are those of a refit without the row", "[ratios]") {
  Generator generator(7);
  const Truth truth{0.8, 1.5, 1.2, 0.9, 2.0, 1.1, 1.3, 1.0};
  for (const bool parts : {true, false}) {
    std::vector<RatioSample> samples;
    for (int i = 0; i < 12; ++i) {
      samples.push_back(generator.sample(truth, parts, 0.1));
      samples.back().name = std::to_string(i);
    }
    const nd::RatioFit fit = nd::fit_ratios(samples);
    REQUIRE(fit.level != RatioLevel::none);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::vector<RatioSample> others = samples;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      nd::CalibrationRatios refit;
      const auto ratios = nd::fit_ratios_at(fit.level, others);
      for (std::size_t key = 0; key < nd::kRatioKeyCount; ++key)
        if (static_cast<RatioKey>(key) != RatioKey::forward) refit.value[key] = ratios[key].ratio;
      for (const auto& row : fit.rows)
        if (row.name == samples[i].name) CHECK(*row.left_out == nd::corrected_step(samples[i], refit.factors()));
    }
  }
}

TEST_CASE("noise, an outlier, collinear parts, one row, zero parts: sane and said", "[ratios]") {
  Generator generator(11);
  const Truth truth{0.8, 1.5, 1.2, 0.9, 2.0, 1.1, 1.3, 1.0};

  SECTION("noise of 5 % moves a ratio by less than 5 %, and the band holds the truth") {
    std::vector<RatioSample> samples;
    for (int i = 0; i < 30; ++i) samples.push_back(generator.sample(truth, true, 0.05));
    const nd::RatioFit fit = nd::fit_ratios(samples);
    CHECK(ratio(fit, RatioKey::compute) == Approx(0.8).epsilon(0.05));
    CHECK(ratio(fit, RatioKey::ep_comm) == Approx(2.0).epsilon(0.05));
    CHECK(finite(fit));
  }
  SECTION("one measurement ten times too long does not pull the ratio along; the plain one is pulled") {
    std::vector<RatioSample> samples;
    for (int i = 0; i < 15; ++i) samples.push_back(generator.sample(truth, true, 0.02));
    auto& bad = samples[3];
    bad.columns[0] = *bad.columns[0] * 10;
    bad.step += *bad.columns[0] * 0.9;
    const nd::RatioFit fit = nd::fit_ratios(samples);
    CHECK(ratio(fit, RatioKey::compute) == Approx(0.8).epsilon(0.05));
    CHECK(*fit.ratios[0].plain > 1.1);
  }
  SECTION("two parts that always move together share the ratio of their sum") {
    std::vector<RatioSample> samples;
    for (int i = 0; i < 10; ++i) {
      RatioSample sample;
      sample.estimated[static_cast<std::size_t>(TimePart::fw_compute)] = generator.between(1, 3);
      const double comm = generator.between(1, 3);
      sample.estimated[static_cast<std::size_t>(TimePart::tp_comm)] = comm;
      sample.estimated[static_cast<std::size_t>(TimePart::ep_comm)] = comm / 2;
      sample.step = 0.9 * sample.estimated[0] + 1.4 * 1.5 * comm;
      samples.push_back(sample);
    }
    const nd::RatioFit fit = nd::fit_ratios(samples);
    REQUIRE(fit.level == RatioLevel::per_part);
    CHECK(ratio(fit, RatioKey::compute) == Approx(0.9).epsilon(1e-5));
    CHECK(ratio(fit, RatioKey::mp_comm) + 0.5 * ratio(fit, RatioKey::ep_comm) == Approx(2.1).epsilon(1e-5));
    // The ridge prefers the nearest to 1: (1 + 1.25 k... ) along (1, 0.5): 1 + t, 1 + t / 2 with 1.5 + 1.25 t = 2.1.
    CHECK(ratio(fit, RatioKey::mp_comm) == Approx(1.48).epsilon(1e-4));
    CHECK(remarked(fit, "MP_COMM and EP_COMM move together"));
    CHECK(finite(fit));
  }
  SECTION("one row: big parts follow it, small ones stay near 1, nothing could be checked") {
    RatioSample sample;
    sample.estimated[static_cast<std::size_t>(TimePart::fw_compute)] = 0.9;
    sample.estimated[static_cast<std::size_t>(TimePart::tp_comm)] = 0.002;
    sample.columns[static_cast<std::size_t>(MeasuredColumn::compute)] = 1.8;
    sample.columns[static_cast<std::size_t>(MeasuredColumn::mp_wait)] = 0.006;
    sample.step = 1.806;
    const nd::RatioFit fit = nd::fit_ratios({sample});
    // weight of the row (0.9 / 1.806)^2 = 0.248 against the ridge (0.02 / 0.25)^2 = 0.0064: (0.248 * 2 + 0.0064) / 0.2544
    CHECK(ratio(fit, RatioKey::compute) == Approx(1.975).epsilon(1e-3));
    CHECK(ratio(fit, RatioKey::mp_comm) == Approx(1.0).epsilon(0.01));
    CHECK(remarked(fit, "one row"));
    CHECK_FALSE(fit.error_left_out);
    CHECK(finite(fit));
  }
  SECTION("parts that are estimated as zero stay at 1 and are named when they were measured") {
    std::vector<RatioSample> samples;
    for (int i = 0; i < 6; ++i) {
      auto sample = generator.sample(truth, true);
      sample.estimated[static_cast<std::size_t>(TimePart::cp_comm)] = 0;
      samples.push_back(sample);
    }
    const nd::RatioFit fit = nd::fit_ratios(samples);
    CHECK(ratio(fit, RatioKey::cp_comm) == 1.0);
    CHECK(remarked(fit, "cp_wait is"));
    CHECK(finite(fit));
  }
  SECTION("nothing at all") {
    const nd::RatioFit fit = nd::fit_ratios({});
    CHECK(fit.level == RatioLevel::none);
    CHECK(remarked(fit, "no row"));
    CHECK(finite(fit));
    CHECK(fit.calibration({}).factors().identity());
  }
  SECTION("everything estimated as zero") {
    RatioSample sample;
    sample.step = 1;
    for (const int n : {1, 3}) CHECK(finite(nd::fit_ratios(std::vector<RatioSample>(static_cast<std::size_t>(n), sample))));
  }
}

TEST_CASE("a fit that rows left out do not bear out abstains", "[ratios]") {
  // Estimates 10 % too long and too short in turn: a ratio has nothing to mend. r = sum a / sum a^2 = 2 / 2.02 at best.
  Generator generator(3);
  std::vector<RatioSample> samples;
  for (int i = 0; i < 20; ++i) {
    RatioSample sample;
    sample.estimated[0] = generator.between(1, 2);
    sample.step = sample.estimated[0] / (i % 2 == 0 ? 1.1 : 0.9);
    samples.push_back(sample);
  }
  const nd::RatioFit fit = nd::fit_ratios(samples);
  CHECK(fit.level == RatioLevel::none);
  CHECK(remarked(fit, "the fit abstains"));
  CHECK(fit.calibration({}).factors().time == nd::PriceFactors{}.time);
}

TEST_CASE("an estimate that is off by one factor gets one common ratio", "[ratios]") {
  Generator generator(5);
  std::vector<RatioSample> samples;
  for (int i = 0; i < 8; ++i) {
    auto sample = generator.sample({1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3}, false);
    sample.step *= 1 + generator.between(-0.02, 0.02);
    samples.push_back(sample);
  }
  const nd::RatioFit fit = nd::fit_ratios(samples);
  CHECK(fit.level == RatioLevel::common);
  CHECK(ratio(fit, RatioKey::compute) == Approx(1.3).epsilon(0.02));
  CHECK(ratio(fit, RatioKey::pp_comm) == ratio(fit, RatioKey::compute));
  // All factors equal: the ranking is the same as before.
  CHECK(fit.after.spearman == fit.before.spearman);
}

TEST_CASE("a few whole steps are no ratio, a few steps with their parts are", "[ratios]") {
  Generator generator(11);
  const auto fit_of = [&generator](int rows, bool parts) {
    std::vector<RatioSample> samples;
    for (int i = 0; i < rows; ++i) samples.push_back(generator.sample({1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3}, parts));
    return nd::fit_ratios(samples);
  };
  for (const int rows : {1, 2, 3}) {
    const nd::RatioFit fit = fit_of(rows, false);
    CHECK(fit.level == RatioLevel::none);
    CHECK(remarked(fit, "fewer than 4 whole steps cannot tell a ratio from scatter"));
    CHECK(fit.calibration({}).factors().time == nd::PriceFactors{}.time);
  }
  CHECK(ratio(fit_of(4, false), RatioKey::compute) == Approx(1.3).epsilon(0.01));
  for (const int rows : {1, 3}) CHECK(ratio(fit_of(rows, true), RatioKey::compute) == Approx(1.3).epsilon(0.05));
}

TEST_CASE("rows of one device are predicted from the others", "[ratios]") {
  Generator generator(9);
  const Truth truth{1.4, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4};
  std::vector<RatioSample> samples;
  for (int i = 0; i < 12; ++i) {
    samples.push_back(generator.sample(truth, false));
    samples.back().group = i % 2 == 0 ? "A2" : "A3";
  }
  const nd::RatioFit fit = nd::fit_ratios(samples);
  REQUIRE(fit.devices.size() == 2);
  CHECK(fit.devices[0].rows == 6);
  CHECK(fit.devices[0].error_before == Approx(1 - 1 / 1.4));
  CHECK(fit.devices[0].error_after < 1e-5);
}

TEST_CASE("a memory ratio is kept when rows left out bear it out", "[ratios]") {
  std::vector<RatioSample> samples(5);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].step = samples[i].estimated[0] = 1;
    samples[i].estimated_memory = 10.0 + static_cast<double>(i);
    samples[i].memory = 1.1 * *samples[i].estimated_memory;
  }
  CHECK(nd::fit_ratios(samples).calibration({}).factors().memory == Approx(1.1));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].memory = (i % 2 == 0 ? 1.2 : 0.8) * *samples[i].estimated_memory;
  CHECK(nd::fit_ratios(samples).calibration({}).factors().memory == 1.0);
}

TEST_CASE("factors: FORWARD and OPTIMIZER stand in for COMPUTE where a file has them", "[ratios]") {
  nd::CalibrationRatios ratios;
  ratios.value[static_cast<std::size_t>(RatioKey::compute)] = 2.0;
  CHECK(ratios.factors().time[static_cast<std::size_t>(TimePart::fw_compute)] == 2.0);
  CHECK(ratios.factors().time[static_cast<std::size_t>(TimePart::optimizer)] == 2.0);
  CHECK(ratios.factors().time[static_cast<std::size_t>(TimePart::other)] == 1.0);
  ratios.value[static_cast<std::size_t>(RatioKey::forward)] = 3.0;
  CHECK(ratios.factors().time[static_cast<std::size_t>(TimePart::fw_compute)] == 3.0);
  CHECK(ratios.factors().time[static_cast<std::size_t>(TimePart::recompute)] == 2.0);
}

TEST_CASE("correlations and agreement by hand", "[ratios]") {
  const std::vector<double> a{1, 2, 3, 4}, b{1, 3, 2, 4};
  CHECK(*nd::pearson(a, b) == Approx(0.8));         // 4 / 5: cov 4, both squares 5
  CHECK(*nd::kendall(a, b) == Approx(4.0 / 6.0));   // five pairs agree, one does not
  CHECK_FALSE(nd::pearson(a, {2, 2, 2, 2}));
  CHECK_FALSE(nd::kendall(a, {2, 2, 2, 2}));
  CHECK_FALSE(nd::pearson({1}, {1}));
  CHECK(nd::leading_agreement(a, b) == 1);
  CHECK(nd::leading_agreement(a, a) == 4);
  CHECK(nd::leading_agreement(a, {4, 3, 2, 1}) == 0);
  CHECK(nd::top_k_overlap(a, b, 2) == 0.5);
  CHECK(nd::top_k_overlap(a, b, 3) == 1.0);
  CHECK(nd::top_k_overlap({}, {}, 3) == 0.0);
  CHECK(nd::ranking_quality(a, {2, 1, 3, 4}).regret == Approx(1.0));  // follows the row of 2 s where 1 s was possible
}
