// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace nd::formats::shell {

/// Value of a name inside an expression.
using NameValue = std::function<std::optional<std::int64_t>(std::string_view name)>;

/// The value of a shell expression: integers (decimal, 0x, octal), names, parentheses, ! - + ~ and the binary operators of the
/// shell up to && and ||, cond ? a : b. nullopt: not an expression, a name without a value, division by 0, or beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> evaluate(std::string_view text, const NameValue& value_of);

}  // namespace nd::formats::shell
