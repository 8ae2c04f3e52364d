// SPDX-License-Identifier: Apache-2.0
#include "measured/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nd::measured {

namespace {

constexpr double kLogarithmicFrom = 6;  // ratio of the largest to the smallest value
constexpr double kTicks = 6;

/// 1, 2 or 5 times a power of ten.
double round_step(double wanted) {
  const double power = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= wanted * 0.999) return factor * power;
  return 10 * power;
}

std::vector<double> linear_ticks(double low, double high) {
  const double step = round_step((high - low) / kTicks);
  std::vector<double> out;
  for (double tick = std::ceil(low / step - 1e-9) * step; tick <= high + 1e-9 * step; tick += step) out.push_back(std::abs(tick) < 1e-9 * step ? 0 : tick);
  return out;
}

std::vector<double> logarithmic_ticks(double low, double high) {
  std::vector<double> out;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= low * 0.999 && factor * power <= high * 1.001) out.push_back(factor * power);
  return out;
}

}  // namespace

Axis Axis::positive(double least, double most, Stretch pixels) {
  Axis out;
  out.pixels_ = pixels;
  out.logarithmic_ = least > 0 && most / least > kLogarithmicFrom;
  const double room = out.logarithmic_ ? 1.15 : 1.0;
  const double span = std::max(most - least, 0.1 * most);
  out.low_ = out.logarithmic_ ? least / room : std::max(0.0, least - 0.08 * span);
  out.high_ = out.logarithmic_ ? most * room : most + 0.08 * span;
  if (out.high_ <= out.low_) out.high_ = out.low_ + 1;
  out.ticks_ = out.logarithmic_ ? logarithmic_ticks(out.low_, out.high_) : linear_ticks(out.low_, out.high_);
  return out;
}

Axis Axis::around_zero(double most, Stretch pixels) {
  Axis out;
  out.pixels_ = pixels;
  out.high_ = std::max(most, 1e-6) * 1.06;
  out.low_ = -out.high_;
  out.ticks_ = linear_ticks(out.low_, out.high_);
  return out;
}

double Axis::at(double value) const {
  const double share = logarithmic_ ? std::log(std::max(value, low_ * 1e-3) / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return pixels_.from + share * (pixels_.to - pixels_.from);
}

std::string tick_text(double value) { return fmt::format("{:.4g}", value); }

}  // namespace nd::measured
