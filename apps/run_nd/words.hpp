// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace run_nd {

/// A list without values is "--name=" with this mark as its value.
inline constexpr std::string_view kEmptyList = "\x1f";
/// The command line in the one spelling that the parser knows: "--name=value" or "--name", long names as in the table. Short names
/// of several letters ("-mem"), '-' for '_' and the other way round, attached values ("-d64") and "--no-" forms are resolved here.
struct CanonicalWords {
  std::vector<std::string> words;
  std::vector<nd::Diagnostic> problems;  ///< unknown options, missing values, stray words, repetitions
};
[[nodiscard]] CanonicalWords canonical_words(const std::vector<std::string>& words);

/// Words of a list separated by spaces.
[[nodiscard]] std::vector<std::string> spaced(std::string_view text);

}  // namespace run_nd
