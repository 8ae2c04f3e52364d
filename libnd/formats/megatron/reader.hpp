// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "formats/tree/node.hpp"

namespace nd::formats {

namespace megatron {
/// One flat mapping with '_' in its names, whatever the file groups or how it spells them.
[[nodiscard]] ConfigNode flat(const ConfigNode& root);
/// Dotted path of an argument in the file; of a new one where the others are.
[[nodiscard]] std::string place_of(const ConfigNode& root, std::string_view name);
}  // namespace megatron

/// Dotted path of the module that a MindSpeed JSON is priced by; empty without modules.
[[nodiscard]] std::string main_module_path(const ConfigNode& root);

}  // namespace nd::formats
