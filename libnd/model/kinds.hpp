// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/checker.hpp"
#include "nd/model_spec.hpp"

namespace nd::model {

/// What each body layer is, in order. Precondition: check_ranges() found nothing.
[[nodiscard]] std::vector<LayerKind> layer_kinds(const ModelSpec& spec, Checker& check);

}  // namespace nd::model
