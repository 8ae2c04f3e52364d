// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nd/parallel_config.hpp"
#include "nd/resolved.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// What a writer puts into a file. Counts in devices, sequences, tokens, layers.
struct ResolvedStrategy {
  ParallelConfig config;
  std::int64_t devices = 1, global_batch_size = 1, seq_length = 1;
  std::int64_t layers = 0, mtp_depth = 0;  ///< of the model
  bool has_experts = false;
  /// Body layers [chunk][stage]. `even`: what every trainer does when nobody states a split, so nothing need be stated.
  std::vector<std::vector<std::int64_t>> layers_per_chunk;
  bool even = true;
  /// Recomputed layers [chunk][stage]; `uniform`: config.recompute holds for every layer.
  std::vector<std::vector<std::int64_t>> full_recompute, selective_recompute;
  bool planned = false;  ///< those counts are a plan, not what the input said
  bool uniform = true;
};

/// Suffix of a file with its dot, as it is spelt; empty without one. What is written has that of its original.
[[nodiscard]] std::string suffix_of(const std::string& file);

/// Edits the text of the original. First the file in the input's own format (its suffix), then the row's other suffixes.
/// What the format cannot say may be left out: the caller reads the result back and refuses it by name. No state.
using WriteFunction = Result<std::vector<ResolvedFile>> (*)(const Original& original, const ResolvedStrategy& strategy);

}  // namespace nd::formats
