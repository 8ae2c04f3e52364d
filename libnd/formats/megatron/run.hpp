// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "formats/megatron/fields.hpp"
#include "formats/megatron/model.hpp"
#include "nd/run_spec.hpp"

namespace nd::formats::megatron {

/// Whether the arguments are those of MindSpeed-LLM: any that Megatron-LM does not have.
[[nodiscard]] bool is_mindspeed(const ConfigNode& root);

/// Degrees, batch, precisions, optimizer, sharding and the profile's features. `devices`: -d, over what the file says. The layers of the
/// stages are read before (stages.hpp).
void read_run(Fields& fields, const Model& model, std::optional<std::int64_t> devices, RunSpec& run);

}  // namespace nd::formats::megatron
