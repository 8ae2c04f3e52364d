// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/search_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {

SearchChecks::SearchChecks(const Request& request, const ConfigNode& root, Findings& findings)
    : request_(request), root_(root), findings_(findings) {}

void SearchChecks::run() {
  batches();
  widths();
  product();
  dense();
  partition();
  ranges();
}

SearchChecks::Values SearchChecks::values_of(Dimension dimension) const {
  for (const auto& one : request_.candidates)
    if (one.dimension == dimension) return {one.values, one.where};
  return {};
}

void SearchChecks::problem(const SourceRef& where, const std::string& message) {
  findings_.problems.push_back(make_diagnostic(Errc::conflict, where, message));
}

void SearchChecks::divides(std::int64_t number, const std::string& what, const Values& values, const std::string& degree) {
  for (const std::int64_t value : values.values)
    if (value > 1 && number % value != 0) problem(values.where, what + " " + std::to_string(number) + " is no multiple of " + degree + " " + std::to_string(value));
}

void SearchChecks::batches() {
  const auto batch = request_.run.global_batch_size;
  if (!batch) return;
  divides(*batch, "the global batch", values_of(Dimension::micro_batch_num), "micro_batch_num");
  divides(*batch, "the global batch", values_of(Dimension::dp), "dp");
}

void SearchChecks::widths() {
  const ModelSpec& model = request_.model;
  const Values tp = values_of(Dimension::tp);
  if (model.hidden_size) divides(*model.hidden_size, "hidden_size", tp, "tp");
  if (model.num_attention_heads) divides(*model.num_attention_heads, "num_attention_heads", tp, "tp");
  if (model.intermediate_size) divides(*model.intermediate_size, "intermediate_size", tp, "tp");
  if (request_.run.seq_length) divides(*request_.run.seq_length, "the sequence length", values_of(Dimension::cp), "cp");
  if (model.num_experts) divides(*model.num_experts, "num_experts", values_of(Dimension::ep), "ep");
}

void SearchChecks::product() {
  const auto devices = request_.run.devices;
  if (!devices) return;
  std::optional<std::int64_t> least = 1;
  SourceRef where = root_.where;
  std::int64_t largest = 0;
  for (const Dimension dimension : {Dimension::dp, Dimension::tp, Dimension::pp, Dimension::cp}) {
    const Values values = values_of(dimension);
    if (values.values.empty()) continue;
    const std::int64_t smallest = *std::min_element(values.values.begin(), values.values.end());
    least = least ? core::multiply(*least, smallest) : least;
    if (smallest > largest) {
      largest = smallest;
      where = values.where;
    }
  }
  if (!least || *least > *devices)
    problem(where, "the smallest dp x tp x pp x cp of the lists is " + (least ? std::to_string(*least) : std::string("beyond any cluster")) + ", there are " +
                       std::to_string(*devices) + " devices");
}

void SearchChecks::dense() {
  if (request_.model.num_experts.value_or(0) > 1) return;
  for (const auto& [dimension, name] : {std::pair{Dimension::ep, "ep"}, std::pair{Dimension::cp, "cp"}}) {
    const Values values = values_of(dimension);
    if (std::any_of(values.values.begin(), values.values.end(), [](std::int64_t value) { return value > 1; }))
      findings_.warn(Errc::conflict, values.where, std::string(name) + " > 1 on a dense model");
  }
}

void SearchChecks::partition() {
  const std::int64_t layers = request_.model.num_hidden_layers.value_or(0);
  Values stages = values_of(Dimension::pp);
  if (const ConfigNode* const stated = find_path(root_, "pp_config.pp_degree")) {
    stages.where = stated->where;
    stages.values.clear();
    if (const auto one = as_integer(*stated)) stages.values.push_back(*one);
    for (const auto& item : stated->items)
      if (const auto value = as_integer(item)) stages.values.push_back(*value);
  }
  for (const std::int64_t value : stages.values)
    if (layers > 0 && value > layers) problem(stages.where, "pp " + std::to_string(value) + " is more than the " + std::to_string(layers) + " layers");
  const ConfigNode* const mode = find_path(root_, "pp_config.stage_partition_mode");
  if (mode == nullptr) return;
  const std::string word = core::canonical_name(mode->text);
  if (word != "uniform" && word != "manual")
    return findings_.problems.push_back(make_diagnostic(Errc::out_of_range, mode->where, "'" + mode->text.substr(0, 60) + "' is neither uniform nor manual"));
  if (word == "uniform") return;
  const ConfigNode* const parts = find_path(root_, "pp_config.stage_partition");
  if (parts == nullptr || !parts->is_sequence()) return problem(mode->where, "a manual partition needs stage_partition, a list of layers per stage");
  for (const std::int64_t value : stages.values)
    if (static_cast<std::int64_t>(parts->items.size()) != value)
      problem(parts->where, "stage_partition has " + std::to_string(parts->items.size()) + " stages for pp " + std::to_string(value));
  std::set<std::int64_t> seen;
  for (const auto& part : parts->items)
    for (const auto& item : part.items) {
      const auto layer = as_integer(item);
      if (!layer || *layer < 0 || *layer >= layers) problem(item.where, "there is no layer " + item.text.substr(0, 60));
      else if (!seen.insert(*layer).second) problem(item.where, "layer " + std::to_string(*layer) + " stands twice");
    }
  if (static_cast<std::int64_t>(seen.size()) < layers)
    problem(parts->where, "stage_partition covers " + std::to_string(seen.size()) + " of " + std::to_string(layers) + " layers");
}

void SearchChecks::ranges() {
  const std::int64_t layers = request_.model.num_hidden_layers.value_or(0);
  if (layers <= 0) return;
  if (const ConfigNode* const range = find_path(root_, "pp_config.layer_offset_range")) {
    const auto low = range->items.size() == 2 ? as_integer(range->items[0]) : std::nullopt;
    const auto high = range->items.size() == 2 ? as_integer(range->items[1]) : std::nullopt;
    if (!low || !high) {
      findings_.problems.push_back(make_diagnostic(Errc::wrong_type, range->where, "must be [lowest, highest], is " + describe(*range)));
    } else {
      if (*low > *high) problem(range->where, "the lowest offset " + std::to_string(*low) + " is above the highest " + std::to_string(*high));
      for (const std::int64_t end : {*low, *high})
        if (end >= layers || end <= -layers) problem(range->where, "an offset of " + std::to_string(end) + " for " + std::to_string(layers) + " layers");
    }
  }
  if (const ConfigNode* const listed = find_path(root_, "pp_config.layer_recompute_layers"))
    for (const auto& item : listed->items)
      if (const auto layer = as_integer(item); !layer || *layer < 0 || *layer >= layers)
        problem(item.where, "there is no layer " + item.text.substr(0, 60) + ": the model has 0 to " + std::to_string(layers - 1));
}

}  // namespace nd::formats
