// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>

#include "nd/search.hpp"

// Parts that several documents share. Included by .cpp files only.
namespace nd::report {

using Json = nlohmann::ordered_json;

/// The degrees and switches of a strategy.
[[nodiscard]] Json config_json(const ParallelConfig& config);
[[nodiscard]] Json memory_json(const MemoryBreakdown& memory);
/// By name of the part, seconds.
[[nodiscard]] Json time_json(const std::array<Seconds, kTimePartCount>& parts);
/// A candidate of a ranking; rank 0 where it has none.
[[nodiscard]] Json candidate_json(const PricedCandidate& candidate, double band);

}  // namespace nd::report
