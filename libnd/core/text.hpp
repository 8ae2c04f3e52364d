// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nd::core {

/// Lower case, '-' and ' ' read as '_': the form in which names are compared.
[[nodiscard]] std::string canonical_name(std::string_view name);
/// Optimal string alignment distance (insert, delete, replace, swap neighbours).
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);
/// The known name nearest to `name`, nullopt when nothing is near: one edit in words of less than four letters,
/// a quarter of longer ones (at most four), a third where one name only shortens the other.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known);
/// "did you mean 'x'?" or "known: a, b, c" (at most 12, then "...").
[[nodiscard]] std::string name_hint(std::string_view name, const std::vector<std::string>& known);
/// Whole text as an integer / real; nullopt when it is not, or does not fit.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
[[nodiscard]] std::optional<double> parse_real(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part);

}  // namespace nd::core
