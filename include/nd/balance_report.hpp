// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nd/balance.hpp"
#include "nd/search.hpp"

namespace nd {

/// A ranked strategy with its layers laid out anew.
struct BalanceReport {
  std::int64_t rank = 0;
  ParallelConfig config;
  std::optional<BalancedStrategy> balanced;
  std::string problem;                    ///< why there is no layout
  std::vector<LayerDescription> layers;   ///< what a pipeline balancer is told
};
[[nodiscard]] BalanceReport balance_report(const Scenario& scenario, const PricedCandidate& candidate);
/// For people; ends with a newline.
[[nodiscard]] std::string balance_text(const BalanceReport& report);
/// The layers as the file that pipeline balancers read: one object with the list `layers_description`; times in units of a layer's
/// forward, memory in MiB. docs/cost_model_plan.md#layer-description
[[nodiscard]] std::string layer_description_json(const std::string& model, const std::vector<LayerDescription>& layers);

}  // namespace nd
