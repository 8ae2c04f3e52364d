// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nd/result.hpp"

// Where the time of recorded steps went: docs/measured.md#classify.
namespace nd {

/// What a wait is for. Columns of the classified CSV, in its order.
enum class WaitKind : std::uint8_t { dp, mp, ep, cp, pp, op, sp };
inline constexpr std::size_t kWaitKindCount = 7;
[[nodiscard]] std::string_view to_text(WaitKind kind);  ///< "dp_wait"

enum class ComputePhase : std::uint8_t { forward, backward, recompute, optimizer, other, unsplit };
inline constexpr std::size_t kComputePhaseCount = 6;
[[nodiscard]] std::string_view to_text(ComputePhase phase);  ///< "fw"

/// Time at one call site. Nanoseconds.
struct CallSite {
  std::int64_t time_ns = 0, calls = 0;
  double bytes = 0;  ///< moved, where the recording says so
  std::string wait;  ///< "dp_wait", ..., "unclassified"
};

/// One recorded step of one rank. Nanoseconds; time = compute + waits + unclassified + idle.
struct ClassifiedStep {
  std::string file;
  std::int64_t rank = 0, step = 0, time_ns = 0;
  std::array<std::int64_t, kComputePhaseCount> compute_ns{};
  std::array<std::int64_t, kWaitKindCount> wait_ns{};
  std::int64_t unclassified_ns = 0, idle_ns = 0;
  std::map<std::string, CallSite> sites;
  [[nodiscard]] std::int64_t compute_total() const;
};

struct ClassifyRequest {
  std::vector<std::string> inputs;  ///< traces (.json, .json.gz, .sqlite) and run folders of the Ascend profiler
  std::vector<std::pair<std::string, std::int64_t>> dims;  ///< "DP" -> 8
};

struct Classification {
  std::vector<ClassifiedStep> steps;  ///< by rank, then step
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::vector<Diagnostic> notes;
  /// Means over ranks and steps, milliseconds.
  [[nodiscard]] ClassifiedStep mean() const;
};

/// Reads every input. Memory does not grow with the size of a trace beyond 24 bytes for each operator and wait on the threads that run the
/// steps. Every problem of all inputs at once.
[[nodiscard]] Result<Classification> classify_traces(const ClassifyRequest& request);

/// "NAME=VALUE,..." of degrees. SP is refused: it is a switch, and the table has sp_wait for it.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::int64_t>>> parse_dims(std::string_view text, const SourceRef& where);

/// Header and row of the classified CSV that run_nd --real_csv reads: dims, time, comp, the waits, milliseconds with three decimals.
[[nodiscard]] std::string classified_header(const Classification& classification);
[[nodiscard]] std::string classified_row(const Classification& classification);
/// Per part under the names of the estimate's parts; one row.
[[nodiscard]] std::string part_csv(const Classification& classification);
/// The text of `existing` (empty = a new file) with the row behind it. Error: the file has other columns.
[[nodiscard]] Result<std::string> append_classified(std::string_view existing, const std::string& path, const Classification& classification);
/// Writes header and row to `path`, or appends the row.
[[nodiscard]] std::optional<Diagnostic> write_classified(const std::string& path, const Classification& classification, bool append);
/// nd/classification/1: every rank and step with its call sites.
[[nodiscard]] std::string classification_json(const Classification& classification);
[[nodiscard]] std::string classification_text(const Classification& classification);

}  // namespace nd
