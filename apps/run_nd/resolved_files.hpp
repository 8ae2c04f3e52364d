// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nd/nd.hpp"

namespace run_nd {

/// Where strategies are written back to: the folder of -o and the input whose format they take.
struct ResolvedPlace {
  std::string folder;  ///< empty: nowhere
  std::string format;
  nd::RequestFiles files;  ///< main: the input; its companions
  std::int64_t ranks = 0;  ///< strategies that are written one by one, besides the best
  bool balanced = false;   ///< and one with its layers laid out anew
};

/// The paths, for as many ranks as are asked for; empty when the format states no strategy.
[[nodiscard]] std::vector<std::string> resolved_paths(const ResolvedPlace& place);

/// The file with the strategy that was laid out anew: its stem, beside those of the ranks.
[[nodiscard]] std::string balanced_stem(const ResolvedPlace& place);

/// Notes on what the format cannot say, the problem that ended it.
struct ResolvedOutcome {
  std::vector<nd::Diagnostic> notes;
  std::vector<nd::Diagnostic> problems;
};
/// Adds to `output` the input with each of the best strategies in place of its own. What the input's format cannot say is said, and the rest written.
[[nodiscard]] ResolvedOutcome write_resolved_files(const ResolvedPlace& place, const nd::SearchReport& report, const nd::DataStore& data,
                                                    nd::OutputFiles& output);
/// Adds the input with the strategy of `report.balance` and its layers.
[[nodiscard]] ResolvedOutcome write_balanced_files(const ResolvedPlace& place, const nd::SearchReport& report, const nd::DataStore& data,
                                                   nd::OutputFiles& output);

}  // namespace run_nd
