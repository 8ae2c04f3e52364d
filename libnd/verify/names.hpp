// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nd/verify.hpp"

namespace nd::verify {

/// A tensor below its layer ("self_attn.q_proj.weight") or below the model.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string part;
  bool copy = false;
};
/// One way in which the tensors of a group are named and fused. `families`: model types that use it, separated by spaces.
struct NameVariant {
  std::string families;
  std::vector<NamedTensor> tensors;
};
/// Alternatives for the same parameters, the usual one first.
using NameGroup = std::vector<NameVariant>;

/// Groups of one layer. `rows` and `columns` are as torch stores a Linear: (out, in).
[[nodiscard]] std::vector<NameGroup> layer_groups(const ResolvedModel& model, const LayerKind& kind);
/// Table, final norm, head.
[[nodiscard]] std::vector<NameGroup> model_groups(const ResolvedModel& model);
/// What an MTP block has besides its layer.
[[nodiscard]] std::vector<NameGroup> mtp_groups(const ResolvedModel& model);

/// "softmax attention + moe".
[[nodiscard]] std::string kind_text(const LayerKind& kind);
/// The part that a parameter block of the op table belongs to.
[[nodiscard]] std::string part_of(std::string_view op);

}  // namespace nd::verify
