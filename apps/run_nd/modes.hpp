// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/nd.hpp"
#include "options.hpp"

namespace run_nd {

/// Exit status of the program.
enum class Exit : int { done = 0, nothing_fits = 1, usage = 2, input = 3, output = 4, bug = 70 };

/// Prints the errors, one line each, and says which status they mean: usage when one is about an option, else input.
Exit refuse(const std::vector<nd::Diagnostic>& problems);

/// --list WHAT.
Exit run_list(const std::string& what, const nd::DataStore& data);
/// The search, with its reports.
Exit run_search(const ParsedOptions& parsed, const nd::DataStore& data);
/// merge PART...: what the command of the parts would have printed and written without --shard.
Exit run_merge(const Options& options, const nd::DataStore& data);
/// --what-if: the request, and the request with something changed, side by side.
Exit run_what_if(const Options& options, const nd::DataStore& data);
/// -d A..B: one search per cluster.
Exit run_sizes(const Options& options, const nd::DataStore& data);
/// --real_csv: measured runs beside their estimates.
Exit run_compare(const Options& options, const nd::DataStore& data);
/// -V, --census: a checkpoint's tensors against the model that is priced. Status 1 when they differ.
Exit run_verify(const Options& options, const nd::DataStore& data);

/// The factors of the calibration file of -c; warnings about what it was fitted on go to `notes`. No file: none.
[[nodiscard]] nd::Result<nd::PriceFactors> read_calibration(const Options& options, const nd::Scenario& scenario, std::vector<nd::Diagnostic>& notes);

}  // namespace run_nd
