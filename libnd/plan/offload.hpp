// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace nd::plan {

/// The copy engine between a device and its host, as a stage's forward sees it.
struct CopyLink {
  double seconds_per_byte = 0;  ///< one way
  double overlap = 1;           ///< share of the compute behind which a copy makes progress, (0, 1]
  double cost_per_byte = 0;     ///< seconds the step pays for a byte, each way, even when the copy hides
};

/// One way to run a layer.
struct CopyOption {
  double bytes = 0;    ///< held, all micro-batches in flight
  double backward = 0; ///< seconds, one micro-batch
};

/// A layer of a stage in forward order. options[0] keeps everything; only a layer that runs it may have its activations moved.
struct CopyLayer {
  double forward = 0;       ///< seconds, one micro-batch
  double in_flight = 1;     ///< micro-batches held
  double movable = 0;       ///< bytes of one micro-batch that may go to the host
  int kind = 0;             ///< layers of one kind are interchangeable
  std::vector<CopyOption> options;
};

/// A stage with one chunk.
struct CopyStage {
  std::vector<CopyLayer> layers;
  std::size_t movable_layers = 0;  ///< layers before the one that ends the warm-up: that one is needed at once
  CopyLink link;
  double budget = 0;  ///< bytes of the device for the layers
};

/// What each layer does.
struct CopyPlan {
  std::vector<std::size_t> option;
  std::vector<double> moved;  ///< bytes of one micro-batch, by layer
  double transit = 0;         ///< bytes held for copies that come back before there is room
  double bytes = 0;           ///< held on the device, `transit` included
  double seconds = 0;         ///< forward, backward and copies of one micro-batch
  [[nodiscard]] double moved_bytes() const;
};

/// Bytes each layer can move when those before it have moved all they can: the copies run in layer order on one stream, a copy
/// starts when its layer's forward has ended, and all end with the stage's forward. `wanted[i]` bytes at most.
/// docs/cost_model_plan.md#copy-window
[[nodiscard]] std::vector<double> copy_window(const CopyStage& stage, std::span<const double> wanted);

/// Bytes that must stay on the device for copies on their way back: a layer and the next come back together while the layers
/// behind them have been released. Zero where there is room.
[[nodiscard]] double transit_bytes(const CopyStage& stage, std::span<const std::size_t> option, std::span<const double> moved);

enum class CopyScope : std::uint8_t {
  none,    ///< recompute only
  prefix,  ///< the stage's first layers move all that the window takes, the last of them gives back what is not needed
  any      ///< whichever layers and shares are fastest
};

/// The fastest plan that stays within the budget; nullopt when none does. `any` is never slower than `prefix`, and `prefix`
/// never slower than `none`. `any` is exact among the plans in which, kind by kind, layers that keep everything come first,
/// then those that are recomputed, then again some that keep everything: windows shrink towards the end of the stage, so no
/// other order lets more bytes move; only the room for copies on their way back can favour one.
[[nodiscard]] std::optional<CopyPlan> plan_copies(const CopyStage& stage, CopyScope scope);

}  // namespace nd::plan
