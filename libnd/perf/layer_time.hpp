// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nd/ops.hpp"
#include "nd/scenario.hpp"
#include "perf/collectives/collective.hpp"
#include "perf/device_rates.hpp"
#include "perf/part_seconds.hpp"

namespace nd::perf {

/// Where the groups are that take part in a layer.
struct LayerPlacements {
  Placement tp, cp, ep, etp;
  friend bool operator==(const LayerPlacements&, const LayerPlacements&) = default;
};

/// What the time of a ledger depends on besides the ledger.
struct LayerContext {
  const Scenario* scenario = nullptr;
  const DeviceRates* rates = nullptr;
  LayerPlacements groups{};
  int ring_steps = 0;  ///< blocks of ring context parallelism, 0 = no ring
  double ep_overlap = 0;  ///< share of the layer's compute that token exchanges run behind
};

/// What kind of thing a ledger describes.
struct LayerTraits {
  bool launched_per_layer = true;      ///< has the host floor of a layer (tables and heads have none)
  bool experts = false;
  std::int64_t experts_per_token = 0;
};

/// One layer (or table, head, MTP block) of one micro-batch on one rank.
struct LayerTime {
  PartSeconds forward, backward;
  PartSeconds full_recompute;       ///< the forward again, collectives and host floor included
  PartSeconds selective_recompute;  ///< added to `backward` when the layer is selectively recomputed
  double weight_gradient = 0;       ///< seconds of `backward` that nobody waits for: the weight gradients
  double dense_elements = 0, expert_elements = 0;  ///< parameters on this rank
};

/// docs/cost_model_time.md#layer
[[nodiscard]] LayerTime layer_time(const LayerContext& context, const LayerLedger& ledger, const LayerTraits& traits);

}  // namespace nd::perf
