// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace nd::report {

enum class Align { left, right };

/// Rows of text set in columns as wide as their widest cell (characters of ASCII). Thread-compatible.
class TextTable {
 public:
  struct Column {
    std::string head;
    Align align = Align::right;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Missing cells are empty.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Head and rows, two spaces between columns, no trailing spaces. Every line begins with `indent`.
  [[nodiscard]] std::string text(const std::string& indent = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "1,234,567".
[[nodiscard]] std::string with_thousands(long long value);
/// "8.03 B", "671 B", "350 M".
[[nodiscard]] std::string short_count(double value);
/// "1.234 s", "56.7 ms".
[[nodiscard]] std::string short_seconds(double seconds);

}  // namespace nd::report
