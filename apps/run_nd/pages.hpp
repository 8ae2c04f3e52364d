// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

namespace run_nd {

/// Title of a section of the pages.
[[nodiscard]] std::string_view group_title(Group group);
inline constexpr std::array kGroups{Group::input, Group::space, Group::answer, Group::output, Group::program};
/// Rows of a section that a person can use.
[[nodiscard]] std::vector<const OptionRow*> rows_of(Group group);
/// Options of the predecessor that are refused.
[[nodiscard]] std::vector<const OptionRow*> refused_rows();
/// Help of an option with its default.
[[nodiscard]] std::string sentence(const OptionRow& row);

/// A form of the command line that the pages show.
struct Usage {
  std::string_view line, meaning;
};
[[nodiscard]] std::vector<Usage> usages();
/// One line per exit status.
[[nodiscard]] std::vector<Usage> exit_statuses();

/// --help.
[[nodiscard]] std::string help_text();
/// docs/cli.md.
[[nodiscard]] std::string help_markdown();
/// The man page, section 1.
[[nodiscard]] std::string man_page();
[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

/// Text of --generate KIND; nullopt: no such kind.
[[nodiscard]] std::optional<std::string> generated_page(std::string_view kind);
inline constexpr std::array<std::string_view, 5> kPageKinds{"markdown", "man", "bash", "zsh", "fish"};

}  // namespace run_nd
