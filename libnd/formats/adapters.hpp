// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "nd/model_spec.hpp"

namespace nd {

/// Trained elements of low-rank adapters: each adapted matrix (in x out) of each layer gets rank x (in + out). `targets` are words
/// separated by spaces: q k v qkv o, gate up (one matrix each), fc1 (both of a gated feed-forward at once, else the one), fc2.
[[nodiscard]] double adapter_elements(const ModelSpec& model, std::int64_t rank, const std::string& targets);

}  // namespace nd
