// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/write/writer.hpp"

namespace nd::formats {

/// The edited script, list or dump, and the argument list (".args").
[[nodiscard]] Result<std::vector<ResolvedFile>> write_megatron(const Original& original, const ResolvedStrategy& strategy);

/// Degrees, partition, recomputed layers, sequence parallelism and length; a batch or sharding of its own the format cannot say.
[[nodiscard]] Result<std::vector<ResolvedFile>> write_mindspeed(const Original& original, const ResolvedStrategy& strategy);

}  // namespace nd::formats
