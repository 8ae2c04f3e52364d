// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

namespace nd {

/// A physical amount: one double in the base unit of its tag. There is no conversion from or to a plain number and
/// none between tags, so that bytes cannot be added to seconds. Doubles, because shards are fractional and FLOP counts
/// exceed 2^63. Immutable value type.
template <class Tag>
struct Quantity {
  double value = 0.0;

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;

  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return {a.value * factor}; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return {factor * a.value}; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return {a.value / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Bytes = Quantity<struct BytesTag>;                    ///< bytes
using Seconds = Quantity<struct SecondsTag>;                ///< seconds
using Flops = Quantity<struct FlopsTag>;                    ///< floating-point operations, a multiply-add is two
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;  ///< bytes per second
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;  ///< floating-point operations per second

constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) { return {amount.value / rate.value}; }
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return {work.value / rate.value}; }
constexpr Bytes operator*(BytesPerSecond rate, Seconds time) { return {rate.value * time.value}; }
constexpr Flops operator*(FlopsPerSecond rate, Seconds time) { return {rate.value * time.value}; }

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;  ///< bytes in a GiB
inline constexpr double kMiB = 1024.0 * 1024.0;           ///< bytes in a MiB
inline constexpr double kGB = 1e9;                        ///< bytes in a GB

constexpr double to_gib(Bytes amount) { return amount.value / kGiB; }

namespace literals {
consteval Bytes operator""_B(unsigned long long n) { return {static_cast<double>(n)}; }
consteval Bytes operator""_KiB(unsigned long long n) { return {static_cast<double>(n) * 1024.0}; }
consteval Bytes operator""_MiB(unsigned long long n) { return {static_cast<double>(n) * kMiB}; }
consteval Bytes operator""_GiB(unsigned long long n) { return {static_cast<double>(n) * kGiB}; }
consteval Bytes operator""_GB(unsigned long long n) { return {static_cast<double>(n) * kGB}; }
consteval Seconds operator""_s(long double n) { return {static_cast<double>(n)}; }
consteval Seconds operator""_ms(long double n) { return {static_cast<double>(n) * 1e-3}; }
consteval Seconds operator""_us(long double n) { return {static_cast<double>(n) * 1e-6}; }
consteval BytesPerSecond operator""_GBps(long double n) { return {static_cast<double>(n) * 1e9}; }
consteval FlopsPerSecond operator""_TFLOPps(long double n) { return {static_cast<double>(n) * 1e12}; }
}  // namespace literals

}  // namespace nd
