// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nd::memory {

/// Everything a stage holds at one instant besides weights, gradients, optimizer states and activations kept by chunks.
enum class Item : std::uint8_t {
  base_workspace,
  grouped_workspace,
  cached_weight_gradients,
  fp8_weights,
  buckets,
  last_layer,
  logits,
  head_weight_gradient,
  layer_working_set,
  recomputed_layer,
  gathered_layers,
  gathered_tables,
  table_gradient,
  reduce_buffer,
  unsharded_gradients,
  boundary_gradients,
  attention_mask,
  optimizer_temporary,
  fp16_gradient_copy,
  mask_creation,
};
inline constexpr std::size_t kItemCount = 20;

/// The figure of StageMemory an item belongs to.
enum class Part : std::uint8_t { workspace, buffers, activations, logits, working_set, temporary };

struct ItemInfo {
  Item item;
  Part part;
  std::string_view op, tensor;
};

/// One row per Item, in its order.
inline constexpr std::array<ItemInfo, kItemCount> kItems{{
    {Item::base_workspace, Part::workspace, "runtime", "library workspaces"},
    {Item::grouped_workspace, Part::workspace, "experts", "grouped product workspaces"},
    {Item::cached_weight_gradients, Part::workspace, "layers", "cached weight gradients"},
    {Item::fp8_weights, Part::workspace, "layers", "8-bit copies of weights"},
    {Item::buckets, Part::buffers, "gradients", "communication buckets"},
    {Item::last_layer, Part::activations, "layers", "first layer, last in the backward"},
    {Item::logits, Part::logits, "head", "logits and loss"},
    {Item::head_weight_gradient, Part::logits, "head", "cached weight gradient"},
    {Item::layer_working_set, Part::working_set, "layers", "backward of one layer"},
    {Item::recomputed_layer, Part::working_set, "layers", "recomputed tensors of one layer"},
    {Item::gathered_layers, Part::working_set, "layers", "gathered weights"},
    {Item::gathered_tables, Part::working_set, "tables", "gathered weights"},
    {Item::table_gradient, Part::working_set, "tables", "whole gradient and its reduction"},
    {Item::reduce_buffer, Part::working_set, "layers", "gradient reduction"},
    {Item::unsharded_gradients, Part::working_set, "gradients", "whole, between micro-batches"},
    {Item::boundary_gradients, Part::working_set, "layers", "boundary gradients"},
    {Item::attention_mask, Part::working_set, "attention", "mask"},
    {Item::optimizer_temporary, Part::temporary, "optimizer", "temporary of the step"},
    {Item::fp16_gradient_copy, Part::temporary, "optimizer", "fp32 copy of the gradients"},
    {Item::mask_creation, Part::temporary, "attention", "mask creation"},
}};

/// Bytes by Item.
struct ItemBytes {
  std::array<double, kItemCount> bytes{};

  [[nodiscard]] double& operator[](Item item) { return bytes[static_cast<std::size_t>(item)]; }
  [[nodiscard]] double operator[](Item item) const { return bytes[static_cast<std::size_t>(item)]; }
  /// Sums by Part.
  [[nodiscard]] std::array<double, 6> by_part() const {
    std::array<double, 6> sums{};
    for (std::size_t i = 0; i < kItemCount; ++i) sums[static_cast<std::size_t>(kItems[i].part)] += bytes[i];
    return sums;
  }
};

/// Name of a part in MemoryLine::part.
[[nodiscard]] constexpr std::string_view to_text(Part part) {
  constexpr std::array<std::string_view, 6> kText{"workspace", "buffers", "activations", "logits", "working_set", "temporary"};
  return kText[static_cast<std::size_t>(part)];
}

}  // namespace nd::memory
