// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// A document as a tree, and what turning it into one showed.
struct Document {
  ConfigNode root;
  std::vector<Diagnostic> notes;
};

/// Any text a reader takes: YAML, JSON, TOML by suffix or content; and as one mapping of argument names ('_' for '-') to values:
/// launch scripts, argument lists, lists of arguments inside JSON or YAML, the table of arguments that Megatron prints.
/// Values that a script does not decide keep their open part (shell::kUnset).
[[nodiscard]] Result<Document> read_any(std::string_view text, const std::string& path);

/// Whether the text is read as a script or an argument list.
[[nodiscard]] bool is_script(std::string_view text, const std::string& path);

namespace megatron {
/// Name of what a script says besides its arguments: its variables speak of NPUs.
inline constexpr std::string_view kOnNpu = "on_npu";
/// The text as it is followed: a bare list of arguments becomes one command, however many lines it has. Offsets stay.
[[nodiscard]] std::string command_text(std::string_view text);
}  // namespace megatron

}  // namespace nd::formats
