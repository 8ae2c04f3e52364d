// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/model_fields.hpp"
#include "formats/tree/node.hpp"
#include "nd/data_store.hpp"
#include "nd/model_spec.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// The model of a config.json, family defaults applied, not yet checked as a whole: overrides may complete it.
struct HfModel {
  ModelSpec spec;
  FieldPlaces places;
  std::vector<Diagnostic> notes;
  bool has_tower = false;  ///< a vision or audio part that is not priced
};

/// Values of wrong types are errors; missing fields are not. `path` names the model.
[[nodiscard]] Result<HfModel> read_hf_model(const ConfigNode& root, const std::string& path, const DataStore& data);
/// Where the config.json of a checkpoint named in a file is, or would be: the folder, the file itself, or a preset of that name.
/// `path` is the naming file; relative names start at its folder.
[[nodiscard]] std::string checkpoint_config_file(const std::string& stated, const std::string& path, const DataStore& data);
/// Where a config keeps its text model: a section of a composite config, else the root.
[[nodiscard]] const ConfigNode& hf_text_config(const ConfigNode& root);

}  // namespace nd::formats
