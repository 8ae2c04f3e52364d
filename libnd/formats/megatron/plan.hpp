// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/tree/node.hpp"
#include "formats/write/writer.hpp"

namespace nd::formats::megatron {

/// What becomes of one argument.
struct Change {
  std::string name;                  ///< '_' for '-'
  std::optional<std::string> value;  ///< nothing: the argument goes; empty: a switch without a value
};

/// The arguments of a strategy, as changes of what `arguments` (a flat mapping) says. What says the same already stays, also when it says
/// it in another way (layers per stage, recompute).
[[nodiscard]] std::vector<Change> plan_changes(const ConfigNode& arguments, const ResolvedStrategy& strategy);

/// The mapping with the changes made.
[[nodiscard]] ConfigNode with_changes(ConfigNode arguments, const std::vector<Change>& changes);

}  // namespace nd::formats::megatron
