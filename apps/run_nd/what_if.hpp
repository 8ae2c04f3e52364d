// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/nd.hpp"
#include "options.hpp"

namespace run_nd {

/// One case of --what-if: the command line with something changed.
struct Variant {
  std::string name;  ///< as the user wrote it: "devices=128 batch=2048"
  Options options;
};

/// The cases that the words of --what-if ask for, in their order. Every problem of the words at once.
[[nodiscard]] nd::Result<std::vector<Variant>> read_variants(const Options& options, const nd::DataStore& data);

}  // namespace run_nd
