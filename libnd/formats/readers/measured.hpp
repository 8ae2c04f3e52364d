// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nd/calibration.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// A measured-run table (columns in docs/validation.md): UTF-8 CSV with a header line; columns in any order, the optional ones
/// `reading`, `framework` and `framework_version` included. Every problem of the file is reported with its line: unknown or missing
/// columns, cells of the wrong type or out of range.
[[nodiscard]] Result<std::vector<MeasuredRow>> read_measured_table(const std::string& path);
/// The same on text that is already in memory; `path` names it in messages.
[[nodiscard]] Result<std::vector<MeasuredRow>> parse_measured_table(std::string_view text, const std::string& path);

}  // namespace nd::formats
