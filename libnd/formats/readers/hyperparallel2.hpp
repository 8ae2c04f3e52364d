// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/tree/node.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// The pieces of a HyperParallel run in three files.
struct ThreeFiles {
  const ConfigNode& model;
  const ConfigNode& train;
  const ConfigNode& accelerate;
};

/// The three files as one train.yaml. Sections are merged key by key; a later file (model, train, accelerate) wins, with a warning in
/// `notes`. A file whose root holds the keys of its section without naming the section is accepted. Every node keeps its own place.
[[nodiscard]] Result<ConfigNode> merge_three_files(const ThreeFiles& files, std::vector<Diagnostic>& notes);

}  // namespace nd::formats
