// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace nd::harness {

using Values = std::map<std::string, std::string, std::less<>>;

/// The text with every {name} of `values` replaced, once: values are not expanded again. A name is letters, digits and _. Names without a
/// value stay as they are and are collected in `unknown` when it is given.
[[nodiscard]] std::string fill_in(std::string_view text, const Values& values, std::set<std::string>* unknown = nullptr);
/// Names that stand in the text as {name}.
[[nodiscard]] std::set<std::string> placeholders_of(std::string_view text);

}  // namespace nd::harness
