// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace nd::measured {

/// A range of values on a stretch of pixels, with round ticks. Logarithmic where the values span more than a factor of 6.
class Axis {
 public:
  /// `from` and `to` in pixels; `from` above `to` for an axis that grows upwards. `least` and `most` are kept inside.
  struct Stretch {
    double from = 0, to = 100;
  };
  static Axis positive(double least, double most, Stretch pixels);
  static Axis around_zero(double most, Stretch pixels);
  [[nodiscard]] double at(double value) const;
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }

 private:
  Axis() = default;
  Stretch pixels_;
  bool logarithmic_ = false;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

/// "0.25", "12", "1200".
[[nodiscard]] std::string tick_text(double value);

}  // namespace nd::measured
