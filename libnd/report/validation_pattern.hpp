// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nd::report {

/// Matches the whole of `text`, any case, against `pattern`: '*' is any run of characters, '@' the same but captured, '#' a
/// captured number ("16", "0.14", "26.02.01"), '\' takes the next character as it is. nullopt when it does not match, else what was captured, in order.
[[nodiscard]] std::optional<std::vector<std::string>> match_pattern(std::string_view pattern, std::string_view text);

/// `text` with $1..$9 replaced by the captures; a reference to a capture that is not there becomes empty.
[[nodiscard]] std::string expand_captures(std::string_view text, const std::vector<std::string>& captures);

/// The phrases of a notes column: split at ';', trimmed, empty ones dropped.
[[nodiscard]] std::vector<std::string> note_phrases(std::string_view notes);

}  // namespace nd::report
