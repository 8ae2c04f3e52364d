// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/stage_lists.hpp"

#include <algorithm>
#include <numeric>

#include "formats/tree/scalar.hpp"

namespace nd::formats {

namespace {

using Counts = std::vector<std::int64_t>;
using ChunkCounts = std::vector<Counts>;  // [chunk][stage]

constexpr std::int64_t kLargestEntry = 1 << 20;  // far above any layer count, far below overflow of a sum

void problem(Section& section, std::string_view key, Errc code, const std::string& message, const std::string& hint = {}) {
  section.map().error(key, code, message, hint);
}

/// A list of one integer per stage; reported and empty when it is not.
Counts stage_list(Section& section, std::string_view key, const ConfigNode& list, const PipelineShape& pipeline) {
  if (static_cast<std::int64_t>(list.items.size()) != pipeline.stages) {
    problem(section, key, Errc::conflict,
            std::string(key) + " has " + std::to_string(list.items.size()) + " entries for " + std::to_string(pipeline.stages) + " stages",
            "one entry per stage, or one list of them per virtual stage");
    return {};
  }
  Counts out;
  for (const auto& item : list.items) {
    const auto value = as_integer(item);
    if (!value || *value < -kLargestEntry || *value > kLargestEntry) {
      problem(section, key, Errc::wrong_type, "entry " + std::to_string(out.size()) + " must be a layer count, is " + describe(item));
      return {};
    }
    out.push_back(*value);
  }
  return out;
}

/// Nested lists [chunk][stage]; reported and empty when they are not.
ChunkCounts chunk_lists(Section& section, std::string_view key, const ConfigNode& lists, const PipelineShape& pipeline) {
  if (static_cast<std::int64_t>(lists.items.size()) != pipeline.chunks) {
    problem(section, key, Errc::conflict,
            std::string(key) + " has " + std::to_string(lists.items.size()) + " lists for " + std::to_string(pipeline.chunks) + " chunks a stage",
            "one list per virtual stage (pp_interleave_num)");
    return {};
  }
  ChunkCounts out;
  for (const auto& list : lists.items) {
    if (!list.is_sequence()) {
      problem(section, key, Errc::wrong_type, "mixes lists and numbers");
      return {};
    }
    out.push_back(stage_list(section, key, list, pipeline));
    if (out.back().empty()) return {};
  }
  return out;
}

bool is_nested(const ConfigNode& list) { return !list.items.empty() && list.items.front().is_sequence(); }

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Layers per chunk before the MTP blocks are taken off. Equation of the format: base b = N / stages / chunks, all whole;
/// a flat entry o of a stage adds o / chunks to each chunk and the rest to its last, a nested entry its own chunk.
ChunkCounts with_offset(const ConfigNode& offset, Section& model, const PipelineShape& pipeline) {
  const std::int64_t total = pipeline.layers + pipeline.mtp;
  const std::int64_t base = total / pipeline.stages / pipeline.chunks;
  ChunkCounts out(static_cast<std::size_t>(pipeline.chunks), Counts(static_cast<std::size_t>(pipeline.stages), base));
  if (offset.is_sequence() && is_nested(offset)) {
    const ChunkCounts lists = chunk_lists(model, "offset", offset, pipeline);
    if (lists.empty()) return {};
    for (std::size_t chunk = 0; chunk < out.size(); ++chunk)
      for (std::size_t stage = 0; stage < out[chunk].size(); ++stage) out[chunk][stage] += lists[chunk][stage];
    return out;
  }
  Counts list(static_cast<std::size_t>(pipeline.stages), 0);
  if (offset.is_sequence()) {
    list = stage_list(model, "offset", offset, pipeline);
    if (list.empty()) return {};
  } else if (const auto value = as_integer(offset); value && std::abs(*value) <= kLargestEntry) {
    std::fill(list.begin(), list.end(), *value);
    // No offset at all: what does not divide goes to the first chunks.
    std::int64_t rest = *value == 0 ? total - base * pipeline.stages * pipeline.chunks : 0;
    for (auto& chunk : out)
      for (auto& count : chunk)
        if (rest > 0) ++count, --rest;
  } else {
    problem(model, "offset", Errc::wrong_type, "must be a whole number, a list per stage or lists per chunk, is " + describe(offset));
    return {};
  }
  for (std::size_t stage = 0; stage < list.size(); ++stage) {
    const std::int64_t share = floor_div(list[stage], pipeline.chunks);
    for (auto& chunk : out) chunk[stage] += share;
    out.back()[stage] += list[stage] - share * pipeline.chunks;
  }
  return out;
}

/// What one recompute key says.
struct Recomputed {
  bool stated = false;
  bool everywhere = false;
  Counts per_stage;  ///< empty: no list
  [[nodiscard]] bool any() const {
    return everywhere || std::any_of(per_stage.begin(), per_stage.end(), [](std::int64_t n) { return n > 0; });
  }
};

bool names_operators(const ConfigNode& node) {
  return node.is_mapping() || (node.is_sequence() && !node.items.empty() && as_string(node.items.front()).has_value());
}

Recomputed read_switch(Section& section, std::string_view key, const PipelineShape& pipeline, Findings& findings) {
  const ConfigNode* const node = section.map().child(key);
  if (node == nullptr) return {};
  Recomputed out;
  out.stated = true;
  if (const auto flag = as_boolean(*node)) {
    out.everywhere = *flag;
  } else if (names_operators(*node)) {
    out.everywhere = true;
    findings.note(node->where, "the operators it names are not priced one by one: selective recompute of every layer");
  } else if (node->is_sequence() && is_nested(*node)) {
    for (const auto& chunk : chunk_lists(section, key, *node, pipeline)) {
      out.per_stage.resize(chunk.size());
      std::transform(chunk.begin(), chunk.end(), out.per_stage.begin(), out.per_stage.begin(), std::plus<>());
    }
  } else if (node->is_sequence()) {
    out.per_stage = stage_list(section, key, *node, pipeline);
  } else if (const auto count = as_integer(*node); count && *count <= kLargestEntry) {
    out.per_stage.assign(static_cast<std::size_t>(pipeline.stages), *count);
  } else {
    problem(section, key, Errc::wrong_type, "must be true, false, a layer count or a list of them, is " + describe(*node));
  }
  if (std::any_of(out.per_stage.begin(), out.per_stage.end(), [](std::int64_t n) { return n < 0; }))
    problem(section, key, Errc::out_of_range, "a negative layer count");
  return out;
}

}  // namespace

std::vector<std::vector<std::int64_t>> read_offset(Section& model, const PipelineShape& pipeline) {
  const ConfigNode* const offset = model.map().child("offset");
  if (offset == nullptr || pipeline.layers <= 0 || pipeline.layers > kLargestEntry || pipeline.mtp > kLargestEntry) return {};
  ChunkCounts out = with_offset(*offset, model, pipeline);
  if (out.empty()) return {};
  std::int64_t sum = 0, least = 0;
  for (const auto& chunk : out) {
    sum = std::accumulate(chunk.begin(), chunk.end(), sum);
    least = std::min(least, *std::min_element(chunk.begin(), chunk.end()));
  }
  const std::int64_t total = pipeline.layers + pipeline.mtp;
  if (least < 0) {
    problem(model, "offset", Errc::out_of_range, "a stage with " + std::to_string(least) + " layers");
    return {};
  }
  if (sum != total) {
    problem(model, "offset", Errc::conflict,
            "the stages hold " + std::to_string(sum) + " layers, the model has " + std::to_string(total) +
                (pipeline.mtp > 0 ? " with its MTP blocks" : ""));
    return {};
  }
  if (out.back().back() < pipeline.mtp) {
    problem(model, "offset", Errc::conflict,
            "the last stage holds " + std::to_string(out.back().back()) + " layers, fewer than the " + std::to_string(pipeline.mtp) + " MTP blocks");
    return {};
  }
  out.back().back() -= pipeline.mtp;
  return out;
}

void read_recompute(Section& section, const PipelineShape& pipeline, RunSpec& run, Findings& findings) {
  const Recomputed full = read_switch(section, "recompute", pipeline, findings);
  Recomputed selective = read_switch(section, "select_recompute", pipeline, findings);
  if (!full.stated && !selective.stated) return;
  const auto origin = [&](const char* field, std::string_view key) { run.origins[field] = {Origin::Kind::file, section.where(key)}; };
  run.recompute = full.any() ? Recompute::full : selective.any() ? Recompute::selective : Recompute::off;
  origin("recompute", full.any() || !selective.any() ? "recompute" : "select_recompute");
  if (full.everywhere) return;  // nothing is left for the selective switch
  if (!full.per_stage.empty()) {
    run.full_recompute_layers = full.per_stage;
    origin("full_recompute_layers", "recompute");
    // Beside counted full layers, "everywhere" means what the counts leave over.
    if (selective.everywhere) selective.per_stage.assign(static_cast<std::size_t>(pipeline.stages), pipeline.layers);
  }
  if (!selective.per_stage.empty()) {
    run.selective_recompute_layers = selective.per_stage;
    origin("selective_recompute_layers", "select_recompute");
  }
}

}  // namespace nd::formats
