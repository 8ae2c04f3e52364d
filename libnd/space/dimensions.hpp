// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nd/search_space.hpp"
#include "space/constraints.hpp"
#include "space/context.hpp"

namespace nd::space {

/// One dimension: names, access to its field, automatic values and constraint. To add a dimension, add a field to
/// ParallelConfig, an enumerator and a row.
struct DimensionRow {
  DimensionInfo info;
  std::int64_t (*get)(const ParallelConfig&);
  void (*set)(ParallelConfig&, std::int64_t);
  std::optional<std::int64_t> (*stated)(const RunSpec&);  ///< what a source says about it
  /// Appends the automatic values, given the dimensions before this one; only the canonical one of several that cost the same.
  void (*domain)(const SpaceContext&, const ParallelConfig&, std::vector<std::int64_t>&);
  Verdict (*check)(const SpaceContext&, const ParallelConfig&);
  bool derived;  ///< follows from the others: automatic when the source does not state it, even if not on the -l list
  std::vector<std::string_view> (*words)();  ///< names of the values 0, 1, ...; null for degrees
};

/// In the order of nd::Dimension.
[[nodiscard]] const std::array<DimensionRow, kDimensionCount>& dimension_table();
[[nodiscard]] inline const DimensionRow& row_of(Dimension d) { return dimension_table()[static_cast<std::size_t>(d)]; }

}  // namespace nd::space
