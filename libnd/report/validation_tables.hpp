// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/validation.hpp"

namespace nd::report {

/// A titled table of text cells; `note` stands under the title.
struct StatisticsTable {
  std::string title, note;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// The tables of a validation report, in the order in which every output shows them.
[[nodiscard]] std::vector<StatisticsTable> validation_tables(const ValidationReport& report, int worst);
/// What could explain a row's error, most telling first; never empty.
[[nodiscard]] std::vector<std::string> error_candidates(const ValidatedRow& row);

/// Columns aligned with spaces, the first to the left, the others to the right.
[[nodiscard]] std::string to_plain_text(const StatisticsTable& table);
[[nodiscard]] std::string to_markdown(const StatisticsTable& table);
[[nodiscard]] std::string to_html(const StatisticsTable& table);
[[nodiscard]] std::string escape_html(const std::string& text);

}  // namespace nd::report
