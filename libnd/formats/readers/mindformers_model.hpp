// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/model_fields.hpp"
#include "formats/readers/hf_model.hpp"
#include "formats/readers/section.hpp"
#include "nd/data_store.hpp"
#include "nd/model_spec.hpp"

namespace nd::formats::mindformers {

/// The model of a file; family defaults applied, checked as a whole by the caller.
struct Model {
  ModelSpec spec;
  FieldPlaces places;
  bool mtp_in_offset = false;  ///< mtp_depth: the offset counts the MTP blocks among the layers
};

/// The sections that state the model.
struct ModelSections {
  Section& trainer;  ///< trainer.model_name: name and family
  Section& model;    ///< model.model_config
  Section& experts;  ///< moe_config, may be absent
  const HfModel* base = nullptr;  ///< of pretrained_model_dir: what model_config does not state
};

[[nodiscard]] Model read_model(const ModelSections& sections, const DataStore& data, Findings& findings);

/// Feed-forward width of MindFormers and Meta when the file states none: H = 4h, with a multiplier floor((m + 0.01) H), then
/// floor(2H / 3), rounded up to multiple_of. Elements. (4096, 0, 256) -> 11008, (8192, 1.3, 256) -> 28672.
[[nodiscard]] std::int64_t derived_width(std::int64_t hidden, double multiplier, std::int64_t multiple_of);

}  // namespace nd::formats::mindformers
