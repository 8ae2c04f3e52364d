// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nd/scenario.hpp"
#include "nd/units.hpp"

namespace nd {

/// The moment at which a stage holds most.
enum class Instant { loss, backward, end_of_backward, optimizer_step, mask };
inline constexpr std::size_t kInstants = 5;
enum class Fit { yes, tight, no };

/// Bytes of one stage, per device, at its peak instant. Parts sum to `allocated`.
struct StageMemory {
  int stage = 0;
  Instant instant = Instant::backward;
  // Static: there all through the step.
  Bytes parameters{}, gradients{}, optimizer_states{}, workspace{}, buffers{};
  // Dynamic: part of the peak instant only.
  Bytes activations{};  ///< kept for the backward, all micro-batches in flight
  Bytes logits{};       ///< loss tensors
  Bytes working_set{};  ///< gathered weights, backward temporaries
  Bytes temporary{};    ///< optimizer step, masks
  Bytes allocated{};    ///< static + dynamic: what the framework's peak counter shows
  Bytes reserved{};     ///< what decides: fragmentation, context and communicators included
  Bytes cached{};       ///< what the allocator's own counter of reserved bytes shows: neither context nor communicators
  double in_flight = 0; ///< micro-batches (of the whole stage) kept at the peak
  [[nodiscard]] Bytes static_bytes() const { return parameters + gradients + optimizer_states + workspace + buffers; }
  [[nodiscard]] Bytes dynamic_bytes() const { return activations + logits + working_set + temporary; }
};

/// One line of the ledger behind a stage's figure.
struct MemoryLine {
  std::string_view part;  ///< "parameters", "activations", ...
  std::string_view op, tensor;
  Bytes bytes{};
};

struct MemoryBreakdown {
  std::vector<StageMemory> stages;
  int peak_stage = 0;
  Bytes budget{};   ///< what the fit test compares with
  Fit fit = Fit::no;
  [[nodiscard]] const StageMemory& peak() const { return stages[static_cast<std::size_t>(peak_stage)]; }
};

/// When a counter was read; the search always uses `steady`.
enum class ReadingTime { steady, first_iteration };

/// Memory of every stage. Precondition: the strategy is legal for the scenario. Pure; thread-safe.
[[nodiscard]] MemoryBreakdown estimate_memory(const Scenario& scenario, const ParallelConfig& config,
                                              ReadingTime reading = ReadingTime::steady);
/// The ledger of one stage at its peak instant; lines sum to `allocated`.
[[nodiscard]] std::vector<MemoryLine> memory_ledger(const Scenario& scenario, const ParallelConfig& config, int stage);

[[nodiscard]] const char* to_text(Instant instant);
[[nodiscard]] const char* to_text(Fit fit);

}  // namespace nd
