// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/megatron/plan.hpp"
#include "nd/result.hpp"

namespace nd::formats::megatron {

/// The script (or argument list) with the changes made where the values stand: in the assignment of a variable, else at its use.
/// Every other argument keeps its value: the result is followed again and compared. `devices`: what the launcher shall start.
/// Errors: unsupported, when a value cannot be changed alone.
[[nodiscard]] Result<std::string> edit_script(const std::string& text, const std::string& file, const std::vector<Change>& changes,
                                              std::optional<std::int64_t> devices);

/// The arguments one per line, as a command takes them.
[[nodiscard]] std::string argument_list(const ConfigNode& arguments);

}  // namespace nd::formats::megatron
