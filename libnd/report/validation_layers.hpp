// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace nd::report {

/// Layers per chunk and stage, [chunk][stage].
using ChunkLayers = std::vector<std::vector<std::int64_t>>;

/// Degrees that decide how a list of layers is dealt out.
struct StageGrid {
  std::int64_t layers = 0, pp = 1, vpp = 1;
};

/// "1,2,2,1", "[10, 8, 6]", "1 10 10 7": integers; nullopt when anything else is in it or it is empty.
[[nodiscard]] std::optional<std::vector<std::int64_t>> parse_layer_list(std::string_view text);

/// A flat list of pp * vpp entries (stage innermost) as chunks; nullopt when the length does not fit or the sum is not `layers`.
[[nodiscard]] std::optional<ChunkLayers> chunks_from_list(const std::vector<std::int64_t>& list, const StageGrid& grid);

/// No-op placeholders among the layers, by index; the stated count includes them (MindSpeed's num-layers does).
struct NoopLayout {
  ChunkLayers chunks;
  std::int64_t layers = 0;  ///< real ones
};
[[nodiscard]] std::optional<NoopLayout> layout_with_noops(const std::vector<std::int64_t>& noops, const StageGrid& grid);

/// Megatron's pipeline layout string, "Et*3|(tt|)*6mL": E table, t layer, m MTP block, L loss, | next chunk, x*n repeats.
struct CustomLayout {
  ChunkLayers chunks;
  std::int64_t mtp = 0;
};
/// Chunks such a string has in all; nullopt for an empty or broken one.
[[nodiscard]] std::optional<std::int64_t> layout_parts(std::string_view text);
[[nodiscard]] std::optional<CustomLayout> parse_custom_layout(std::string_view text, const StageGrid& grid);

/// Layers per stage under `chunks`, or the even split (empty when layers do not divide).
[[nodiscard]] std::vector<std::int64_t> stage_layers(const ChunkLayers& chunks, const StageGrid& grid);

}  // namespace nd::report
