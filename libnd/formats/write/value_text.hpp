// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "formats/tree/node.hpp"
#include "formats/write/config_editor.hpp"

namespace nd::formats {

/// The value as the syntax spells it, in the style of the text it replaces (its quotes, True or true).
[[nodiscard]] std::string value_text(const WrittenValue& value, Syntax syntax, std::string_view replaced);
/// A key with its separator: "key: ", "\"key\": ", "key = ".
[[nodiscard]] std::string key_text(std::string_view key, Syntax syntax);
/// Whether a node says this value. Words are compared as names (any case, - as _).
[[nodiscard]] bool reads_as(const ConfigNode& node, const WrittenValue& value);

}  // namespace nd::formats
