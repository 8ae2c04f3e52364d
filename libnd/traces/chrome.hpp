// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "nd/classify.hpp"

namespace nd::traces {

/// A file as a stream, unpacked where it is gzip; nullptr when it cannot be opened. Memory: one buffer.
[[nodiscard]] std::unique_ptr<std::istream> open_stream(const std::string& path);

/// torch.profiler's Chrome trace of one rank.
[[nodiscard]] Result<std::vector<ClassifiedStep>> classify_chrome(const std::string& path);
/// ASCEND_PROFILER_OUTPUT of one rank: step_trace_time.csv and communication.json.
[[nodiscard]] Result<std::vector<ClassifiedStep>> classify_ascend(const std::string& folder, const ClassifyRequest& request);
/// SQLite export of Nsight Systems.
[[nodiscard]] Result<std::vector<ClassifiedStep>> classify_nsight(const std::string& path, const ClassifyRequest& request);

/// N of "rank<N>" in the name, else of "rank_<N>" or "rank-<N>"; nullopt when there is none.
[[nodiscard]] std::optional<std::int64_t> rank_in_name(const std::string& name);
/// "1712345678901.234" microseconds -> nanoseconds, exactly; nullopt for what is no number or too large.
[[nodiscard]] std::optional<std::int64_t> nanoseconds(const std::string& microseconds);

/// Kind of a wait by the names of the frames around it, innermost first, and by the collective; nullopt = nobody known.
[[nodiscard]] std::optional<WaitKind> wait_by_site(const std::vector<std::string_view>& frames, std::string_view collective);
/// Whether the name is of a call site that decides.
[[nodiscard]] bool names_site(std::string_view frame);
/// By the collective alone, as far as the degrees leave one possibility: all-to-all ep, all-gather and reduce-scatter op unless MP or CP are
/// above 1, all-reduce dp, send and receive pp.
[[nodiscard]] std::optional<WaitKind> wait_by_collective(std::string_view name, const ClassifyRequest& request);

}  // namespace nd::traces
