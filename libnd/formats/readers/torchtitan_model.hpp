// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/model_fields.hpp"
#include "formats/readers/section.hpp"
#include "nd/data_store.hpp"
#include "nd/model_spec.hpp"

namespace nd::formats::torchtitan {

/// The model that [model] names by its flavor, with the fields of [nd.model] over it.
struct Model {
  ModelSpec spec;
  FieldPlaces places;
  bool found = false;  ///< there is a spec to check
};

/// `model` is the section [model]. Problems go to `findings`.
[[nodiscard]] Model read_model(const ConfigNode& root, Section& model, const DataStore& data, Findings& findings);

}  // namespace nd::formats::torchtitan
