// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/megatron/fields.hpp"
#include "formats/model_fields.hpp"
#include "nd/model_spec.hpp"

namespace nd::formats::megatron {

/// The model that a list of arguments describes.
struct Model {
  ModelSpec spec;
  FieldPlaces places;
  std::int64_t slots = 0;               ///< --num-layers: layers and the places that no-op layers hold
  std::vector<std::int64_t> empty;      ///< places without a layer, ascending (--noop-layers)
  bool padded_vocabulary = false;       ///< vocab_size is the size of the table already
};

/// Reads the model with the trainer's own defaults (Megatron-core: arguments and transformer_config).
[[nodiscard]] Model read_model(Fields& fields);

/// "[0]*3+[1]*58" and the like -> the list; empty when it is no such expression or longer than any model.
[[nodiscard]] std::vector<std::int64_t> pattern_list(const std::string& text);

/// Feed-forward width that Megatron derives: 4h; with --swiglu the largest multiple of 64 up to 8h/3.
[[nodiscard]] std::int64_t derived_ffn(std::int64_t hidden, bool gated);

}  // namespace nd::formats::megatron
