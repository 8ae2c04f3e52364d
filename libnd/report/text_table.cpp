// SPDX-License-Identifier: Apache-2.0
#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nd::report {

std::string TextTable::text(const std::string& indent) const {
  std::vector<std::size_t> width;
  for (const auto& column : columns_) width.push_back(column.head.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < width.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text = indent;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string value = cell(i);
      const std::string pad(width[i] - value.size(), ' ');
      text += (i == 0 ? "" : "  ") + (columns_[i].align == Align::left ? value + pad : pad + value);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([this](std::size_t i) { return columns_[i].head; });
  for (const auto& row : rows_) line([&row](std::size_t i) { return i < row.size() ? row[i] : std::string(); });
  return out;
}

std::string with_thousands(long long value) {
  std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string short_count(double value) {
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits{{{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}}};
  for (const auto& unit : kUnits)
    if (value >= unit.size) return fmt::format("{:.3g}{}", value / unit.size, unit.name);
  return fmt::format("{:.0f}", value);
}

std::string short_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  return fmt::format("{:.2f} ms", seconds * 1e3);
}

}  // namespace nd::report
