// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/nd.hpp"
#include "options.hpp"

namespace run_nd {

/// A search ready to start.
struct PreparedSearch {
  nd::Scenario scenario;
  nd::SearchSpace space;
  nd::SearchOptions options;
  nd::RunSpec stated;            ///< the input with the command line on top
  std::vector<nd::Dimension> searched;  ///< those of -l, in its order
  bool states_strategy = false;  ///< the input itself states degrees
  bool stated_is_legal = false;  ///< the input's own strategy runs as it stands
  std::string stated_problem;    ///< why it does not
  std::vector<nd::Diagnostic> stated_problems;  ///< where its fields contradict each other: no strategy can be named then
  std::string file, format;
  std::vector<nd::DimensionCandidates> candidates;  ///< lists of the search config
  std::vector<std::string> defaulted;
  std::vector<nd::Diagnostic> notes;
};

/// Reads the input, lays the command line over it and resolves everything. Every problem that can be found together is
/// reported together.
[[nodiscard]] nd::Result<PreparedSearch> prepare_search(const Options& options, const nd::DataStore& data);

}  // namespace run_nd
