// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace run_nd {

namespace {

struct Unit {
  std::string_view name;
  double size;
};

/// A number that is not negative, and what follows it in lower case.
struct Quantity {
  double value = 0;
  std::string unit;
};

std::optional<Quantity> quantity(std::string_view text) {
  Quantity out;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  if (error != std::errc{} || !std::isfinite(out.value) || out.value < 0) return std::nullopt;
  out.unit.assign(end, text.data() + text.size());
  out.unit.erase(0, out.unit.find_first_not_of(' '));
  for (char& c : out.unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

template <std::size_t N>
std::optional<double> in_units(std::string_view text, const std::array<Unit, N>& units) {
  const auto read = quantity(text);
  if (!read) return std::nullopt;
  for (const auto& unit : units)
    if (read->unit == unit.name) return read->value * unit.size;
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool only_digits(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<nd::Bytes> parse_memory(std::string_view text) {
  constexpr std::array<Unit, 7> kUnits{{{"b", 1}, {"kb", 1024}, {"mb", nd::kMiB}, {"gb", nd::kGiB}, {"kib", 1024}, {"mib", nd::kMiB}, {"gib", nd::kGiB}}};
  const auto bytes = in_units(text, kUnits);
  if (!bytes) return std::nullopt;
  return nd::Bytes{*bytes};
}

std::optional<Amount> parse_amount(std::string_view text) {
  constexpr std::array<Unit, 6> kUnits{{{"", 1}, {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"g", 1e9}, {"t", 1e12}}};
  const auto value = in_units(text, kUnits);
  if (!value || !(*value > 0)) return std::nullopt;
  return Amount{*value};
}

std::optional<DeviceCounts> parse_device_counts(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) {
    const auto count = parse_integer(text);
    return count ? std::optional(DeviceCounts{*count, *count, 0}) : std::nullopt;
  }
  DeviceCounts out;
  std::string_view most = text.substr(dots + 2);
  const auto colon = most.find(':');
  if (colon != std::string_view::npos) {
    const auto step = parse_integer(most.substr(colon + 1));
    if (!step || *step < 1) return std::nullopt;
    out.step = *step;
    most = most.substr(0, colon);
  }
  const auto first = parse_integer(text.substr(0, dots)), last = parse_integer(most);
  if (!first || !last || *last < *first) return std::nullopt;
  out.least = *first;
  out.most = *last;
  return out;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out{""};
  for (const char c : text) {
    if (c == separator) out.emplace_back();
    else out.back() += c;
  }
  return out;
}

}  // namespace run_nd
