// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/shell/value.hpp"
#include "nd/result.hpp"

namespace nd::formats::shell {

struct Command;
using Commands = std::vector<Command>;

/// NAME=word, NAME+=word or NAME=( words ).
struct Assignment {
  std::string name;
  bool append = false, array = false;
  Span word;                ///< of a string
  std::vector<Span> words;  ///< of an array
};

/// How a command follows the one before it.
enum class Link { always, if_true, if_false, piped };

enum class CommandKind { simple, test, arithmetic, branch, choice, loop, each, function, group };

/// One command of a script. Which members count depends on the kind.
struct Command {
  CommandKind kind = CommandKind::simple;
  Link link = Link::always;
  bool negated = false;
  Span where;
  std::vector<Assignment> assignments;            ///< simple
  std::vector<Span> words;                        ///< simple; test: between [[ and ]]; each: the list; choice: the word
  std::string name;                               ///< each: the variable; function: its name
  bool until = false;                             ///< loop
  std::vector<std::pair<Commands, Commands>> branches;  ///< branch: condition, body (else: empty condition); loop: one; group, function, each: one body
  std::vector<std::pair<std::vector<Span>, Commands>> cases;  ///< choice: patterns, body
};

/// Parses the part of the shell's grammar that launch scripts use: lists, pipes, if, case, for, while, functions, groups, [[ ]], (( )),
/// arrays, here-documents (skipped). Errors: syntax with line and column, out_of_range when nested too deeply. Nothing is run.
[[nodiscard]] Result<Commands> parse(std::string_view text, const std::string& file);

/// End of the word that begins at `at`: quotes, ${}, $(), $(()) and backquotes are skipped over.
[[nodiscard]] std::size_t word_end(std::string_view text, std::size_t at);
/// Position behind the construct that opens at `at` ("${", "$(", "$((", "`", a quote); the end of the text when it is not closed.
[[nodiscard]] std::size_t skip_construct(std::string_view text, std::size_t at);

}  // namespace nd::formats::shell
