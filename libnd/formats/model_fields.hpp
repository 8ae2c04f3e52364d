// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/map_reader.hpp"
#include "nd/model_spec.hpp"

namespace nd::formats {

/// Where each field of a model spec was read; keys are field names.
using FieldPlaces = std::map<std::string, SourceRef, std::less<>>;

/// Names of all optional and list fields of ModelSpec, in its order.
[[nodiscard]] const std::vector<std::string>& model_field_names();

/// Reads the member `key` of `map` into the field `field` of `spec`. False when the spec has no such field. A value of the wrong
/// type or below the field's least value goes to the reader's sink and leaves the field open.
bool read_model_field(MapReader& map, std::string_view key, std::string_view field, ModelSpec& spec);
/// Whether the field is stated.
[[nodiscard]] bool model_field_stated(const ModelSpec& spec, std::string_view field);
/// Copies what `other` states: only into open fields, or over everything.
enum class Precedence { fill_open, replace };
void merge_model_fields(ModelSpec& spec, const ModelSpec& other, Precedence precedence);

/// Resolves the spec to find every problem; positions are those of the fields' values where known, else of `root`.
[[nodiscard]] std::vector<Diagnostic> model_problems(const ModelSpec& spec, const ConfigNode& root, const FieldPlaces& places);

}  // namespace nd::formats
