// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shell/value.hpp"
#include "nd/result.hpp"

namespace nd::formats::shell {

/// A command with its words expanded.
struct Invocation {
  std::vector<Value> words;
  Span where;
};

/// A variable at the end of the script: one value, or those of an array.
struct Variable {
  bool array = false;
  std::vector<Value> values;
};

/// What following a script shows.
struct Trace {
  std::vector<Invocation> commands;  ///< those with a word that begins with "--", in order
  std::map<std::string, Variable, std::less<>> variables;
  std::vector<std::string> defaults;  ///< names whose ${NAME:-default} was taken, in order
  std::vector<Diagnostic> notes;      ///< sourced files, tests that cannot be decided
};

/// Follows the assignments, arrays, arithmetic, tests, loops and functions of a script as the shell would in an empty environment,
/// without running anything. What depends on the environment, on arguments of the script or on the output of a program stays open
/// (kUnset). Errors: those of parse(), and out_of_range when the script unfolds beyond any real one. No state; thread-safe.
[[nodiscard]] Result<Trace> follow(std::string_view text, const std::string& file);

}  // namespace nd::formats::shell
