// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "nd/report.hpp"

// Sections of the page of a search that are about one strategy.
namespace nd::report {

[[nodiscard]] std::string memory_section(const PricedCandidate& candidate);
/// The step of the candidate, with those of others below it.
[[nodiscard]] std::string time_section(const SearchReport& report, const PricedCandidate& candidate);
[[nodiscard]] std::string pipeline_section(const SearchReport& report, const PricedCandidate& candidate);

}  // namespace nd::report
