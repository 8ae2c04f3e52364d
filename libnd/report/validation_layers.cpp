// SPDX-License-Identifier: Apache-2.0
#include "report/validation_layers.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "core/text.hpp"

namespace nd::report {
namespace {

constexpr std::int64_t kLongestLayout = 4096;  // chunks or layers; far above any real pipeline

ChunkLayers empty_chunks(const StageGrid& grid) {
  return ChunkLayers(static_cast<std::size_t>(grid.vpp), std::vector<std::int64_t>(static_cast<std::size_t>(grid.pp), 0));
}

/// Repeats "x*n" and "(...)*n" written out; nullopt when brackets do not match or it grows without bound.
std::optional<std::string> expand_repeats(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::string unit;
    if (text[i] == '(') {
      const std::size_t close = text.find(')', i);
      if (close == std::string_view::npos) return std::nullopt;
      unit = std::string(text.substr(i + 1, close - i - 1));
      i = close + 1;
    } else {
      unit = std::string(1, text[i++]);
    }
    std::int64_t times = 1;
    if (i < text.size() && text[i] == '*') {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      const auto count = core::parse_integer(text.substr(i + 1, end - i - 1));
      if (!count || *count < 0 || *count > kLongestLayout) return std::nullopt;
      times = *count;
      i = end;
    }
    for (std::int64_t n = 0; n < times; ++n) out += unit;
    if (static_cast<std::int64_t>(out.size()) > 4 * kLongestLayout) return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<std::vector<std::int64_t>> parse_layer_list(std::string_view text) {
  std::string plain;
  for (const char c : text) plain += (c == '[' || c == ']' || c == ',') ? ' ' : c;
  std::vector<std::int64_t> out;
  for (const std::string& part : core::split(plain, ' ')) {
    if (part.empty()) continue;
    const auto value = core::parse_integer(part);
    if (!value || *value < 0 || *value > kLongestLayout) return std::nullopt;
    out.push_back(*value);
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<ChunkLayers> chunks_from_list(const std::vector<std::int64_t>& list, const StageGrid& grid) {
  if (static_cast<std::int64_t>(list.size()) != grid.pp * grid.vpp) return std::nullopt;
  if (std::accumulate(list.begin(), list.end(), std::int64_t{0}) != grid.layers) return std::nullopt;
  ChunkLayers chunks = empty_chunks(grid);
  for (std::size_t i = 0; i < list.size(); ++i)
    chunks[i / static_cast<std::size_t>(grid.pp)][i % static_cast<std::size_t>(grid.pp)] = list[i];
  return chunks;
}

std::optional<NoopLayout> layout_with_noops(const std::vector<std::int64_t>& noops, const StageGrid& grid) {
  const std::int64_t parts = grid.pp * grid.vpp;
  const auto placeholders = static_cast<std::int64_t>(noops.size());
  if (grid.layers % parts != 0 || grid.layers <= placeholders) return std::nullopt;
  if (std::any_of(noops.begin(), noops.end(), [&](std::int64_t i) { return i >= grid.layers; })) return std::nullopt;
  NoopLayout out;
  out.layers = grid.layers - placeholders;
  out.chunks = empty_chunks(grid);
  const std::int64_t per = grid.layers / parts;
  for (std::int64_t layer = 0; layer < grid.layers; ++layer) {
    if (std::find(noops.begin(), noops.end(), layer) != noops.end()) continue;
    const std::int64_t part = layer / per;
    ++out.chunks[static_cast<std::size_t>(part / grid.pp)][static_cast<std::size_t>(part % grid.pp)];
  }
  return out;
}

std::optional<std::int64_t> layout_parts(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto flat = expand_repeats(text);
  if (!flat) return std::nullopt;
  return 1 + std::count(flat->begin(), flat->end(), '|');
}

std::optional<CustomLayout> parse_custom_layout(std::string_view text, const StageGrid& grid) {
  const auto flat = expand_repeats(text);
  if (!flat) return std::nullopt;
  CustomLayout out;
  out.chunks = empty_chunks(grid);
  std::size_t part = 0;
  std::int64_t layers = 0;
  const auto parts = static_cast<std::size_t>(grid.pp * grid.vpp);
  for (const char c : *flat) {
    if (c == '|') {
      if (++part >= parts) return std::nullopt;
    } else if (c == 't') {
      ++out.chunks[part / static_cast<std::size_t>(grid.pp)][part % static_cast<std::size_t>(grid.pp)];
      ++layers;
    } else if (c == 'm') {
      ++out.mtp;
    } else if (c != 'E' && c != 'L') {
      return std::nullopt;
    }
  }
  if (part + 1 != parts || layers != grid.layers) return std::nullopt;
  return out;
}

std::vector<std::int64_t> stage_layers(const ChunkLayers& chunks, const StageGrid& grid) {
  std::vector<std::int64_t> out;
  if (chunks.empty()) {
    if (grid.layers % grid.pp == 0) out.assign(static_cast<std::size_t>(grid.pp), grid.layers / grid.pp);
    return out;
  }
  out.assign(static_cast<std::size_t>(grid.pp), 0);
  for (const auto& chunk : chunks)
    for (std::size_t stage = 0; stage < chunk.size() && stage < out.size(); ++stage) out[stage] += chunk[stage];
  return out;
}

}  // namespace nd::report
