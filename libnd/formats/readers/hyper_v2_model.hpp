// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/model_fields.hpp"
#include "formats/readers/section.hpp"
#include "nd/data_store.hpp"
#include "nd/model_spec.hpp"

namespace nd::formats::hyper_v2 {

/// The model a train.yaml names, overrides applied.
struct Model {
  ModelSpec spec;
  FieldPlaces places;
  const ConfigNode* overrides = nullptr;  ///< model.config_overrides, or nullptr
  bool found = false;  ///< there is a spec to check
};

/// What reading it needs.
struct ModelSource {
  const ConfigNode& root;
  const std::string& path;  ///< of the train.yaml; checkpoint paths are relative to its folder
  const DataStore& data;
  bool auto_models = true;  ///< the current schema: trains no MTP block and no tower
};

/// AutoModels when anything of it is there, else the older schema when its sections are.
[[nodiscard]] bool is_auto_models(const ConfigNode& root);
/// The field of a model that a key of the trainer's own model spec means: its own name, or the one of another spelling.
[[nodiscard]] std::string_view model_field_of(std::string_view key);
/// Every key that states a model.
[[nodiscard]] std::vector<std::string> model_keys();
/// Keys of config_overrides that describe the run, not the model.
[[nodiscard]] bool is_run_override(std::string_view key);
/// Checkpoint first, then overrides field by field. Problems go to `findings`.
[[nodiscard]] Model read_model(const ModelSource& source, Findings& findings);

}  // namespace nd::formats::hyper_v2
