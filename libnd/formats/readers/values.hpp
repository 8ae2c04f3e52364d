// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nd/device.hpp"
#include "nd/run_spec.hpp"
#include "nd/units.hpp"

namespace nd::formats {

/// "58GB" -> 58 * 2^30: memory texts of the trainers' own files count in powers of 1024 whatever the unit's spelling (B KB MB GB TB, KiB ...),
/// in any case. nullopt without a unit, with another one, or when not positive.
[[nodiscard]] std::optional<Bytes> parse_memory(std::string_view text);
/// Bytes per element of a dtype name: the first run of digits / 8. "bfloat16" and "bf16" 2, "float32" 4, "float8_e4m3" 1.
[[nodiscard]] std::optional<double> dtype_bytes(std::string_view name);
/// Type of activations by a name; what is narrower than 16 bits is no type of theirs. nullopt for "auto" and other words.
[[nodiscard]] std::optional<Dtype> activation_dtype(std::string_view name);
/// What an optimizer of that name or class keeps: muon, sgd or momentum, adam in all spellings (8bit: 8-bit states). nullopt for
/// others; they are priced as AdamW with a warning and count as not stated.
[[nodiscard]] std::optional<OptimizerKind> optimizer_of_name(std::string_view name);
/// The words of that warning.
[[nodiscard]] std::string unknown_optimizer(std::string_view name);
/// The model_type that a free-text name of a model, trainer or class contains ("llama3_70b" -> "llama"); empty when none does.
[[nodiscard]] std::string family_of_name(std::string_view name);

}  // namespace nd::formats
