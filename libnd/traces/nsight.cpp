// SPDX-License-Identifier: Apache-2.0
// SQLite export of Nsight Systems (nsys export --type sqlite): kernels with StringIds, NVTX ranges. Schema: Nsight Systems documentation,
// "SQLite Schema Reference".
#include <sqlite3.h>

#include <algorithm>
#include <memory>

#include "core/text.hpp"
#include "traces/chrome.hpp"

namespace nd::traces {

namespace {

using Database = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

struct Range {
  std::int64_t begin = 0, end = 0;
  std::string name;
};

bool is_communication(std::string_view name) { return name.find("nccl") != std::string_view::npos || name.find("hccl") != std::string_view::npos || name.find("rccl") != std::string_view::npos; }

class NsightExport {
 public:
  NsightExport(const std::string& path, const ClassifyRequest& request) : path_(path), request_(request), database_(nullptr, sqlite3_close) {}

  Result<std::vector<ClassifiedStep>> run() {
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open_v2(path_.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(raw);
    if (opened != SQLITE_OK) return make_error(Errc::io, {path_, 0, 0, {}}, "cannot be read");
    if (!has_table("CUPTI_ACTIVITY_KIND_KERNEL") || !has_table("StringIds"))
      return make_error(Errc::missing_field, {path_, 0, 0, "CUPTI_ACTIVITY_KIND_KERNEL"}, "is missing: no export of Nsight Systems with kernels", "nsys profile --trace=cuda,nvtx, then nsys export --type sqlite");
    read_steps();
    if (steps_.empty())
      return make_error(Errc::missing_field, {path_, 0, 0, "NVTX_EVENTS"}, "no NVTX range marks a step", "name the range of a step 'ProfilerStep#N' or 'step N'");
    std::vector<ClassifiedStep> out;
    for (const Range& step : steps_) out.push_back(classify(step));
    if (!problem_.empty()) return make_error(Errc::syntax, {path_, 0, 0, {}}, problem_);
    return out;
  }

 private:
  Statement prepare(const char* sql) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql, -1, &raw, nullptr) != SQLITE_OK) problem_ = sqlite3_errmsg(database_.get());
    return {raw, sqlite3_finalize};
  }
  static std::string text(sqlite3_stmt* statement, int column) {
    const auto* value = sqlite3_column_text(statement, column);
    return value == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(value));
  }
  bool has_table(const char* name) {
    const Statement query = prepare("SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?1");
    if (!query) return false;
    sqlite3_bind_text(query.get(), 1, name, -1, SQLITE_STATIC);
    return sqlite3_step(query.get()) == SQLITE_ROW;
  }

  /// "ProfilerStep#3", "step 3", "step3", "iteration 3".
  static std::optional<std::int64_t> step_number(const std::string& name) {
    const std::string lower = core::canonical_name(name);
    for (const std::string_view prefix : {"profilerstep#", "step_", "step", "iteration_", "iteration"})
      if (lower.starts_with(prefix))
        if (const auto number = core::parse_integer(std::string_view(lower).substr(prefix.size()))) return number;
    return std::nullopt;
  }

  void read_steps() {
    if (!has_table("NVTX_EVENTS")) return;
    const Statement query = prepare("SELECT n.start, n.end, COALESCE(n.text, s.value) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end IS NOT NULL ORDER BY n.start");
    if (!query) return;
    while (sqlite3_step(query.get()) == SQLITE_ROW) {
      const std::string name = text(query.get(), 2);
      if (!step_number(name)) continue;
      steps_.push_back({sqlite3_column_int64(query.get(), 0), sqlite3_column_int64(query.get(), 1), name});
    }
  }

  /// Compute is the time in which any other kernel runs; of a collective only what no other kernel covers is a wait.
  ClassifiedStep classify(const Range& step) {
    ClassifiedStep out;
    out.file = path_;
    out.rank = rank_in_name(path_).value_or(0);
    out.step = step_number(step.name).value_or(0);
    out.time_ns = step.end - step.begin;
    std::vector<Range> compute, communication;
    const Statement query = prepare(
        "SELECT k.start, k.end, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s ON s.id = k.shortName WHERE k.start < ?2 AND k.end > ?1 ORDER BY k.start");
    if (!query) return out;
    sqlite3_bind_int64(query.get(), 1, step.begin);
    sqlite3_bind_int64(query.get(), 2, step.end);
    while (sqlite3_step(query.get()) == SQLITE_ROW) {
      const std::int64_t begin = sqlite3_column_int64(query.get(), 0), end = sqlite3_column_int64(query.get(), 1);
      Range kernel{std::max(step.begin, begin), std::min(step.end, end), text(query.get(), 2)};
      if (kernel.end <= kernel.begin) continue;
      if (is_communication(kernel.name)) communication.push_back(std::move(kernel));
      else add(compute, kernel.begin, kernel.end);
    }
    std::int64_t busy = 0;
    for (const Range& range : compute) busy += range.end - range.begin;
    out.compute_ns[static_cast<std::size_t>(ComputePhase::unsplit)] = busy;
    std::int64_t covered = step.begin, waits = 0;
    for (const Range& kernel : communication) {
      const std::int64_t begin = std::max(covered, kernel.begin);
      if (kernel.end <= begin) continue;
      covered = kernel.end;
      const std::int64_t exposed = kernel.end - begin - overlap(compute, begin, kernel.end);
      waits += exposed;
      add_wait(kernel.name, exposed, out);
    }
    out.idle_ns = out.time_ns - busy - waits;
    return out;
  }

  /// Kernels come by begin: the union grows at its end.
  static void add(std::vector<Range>& joined, std::int64_t begin, std::int64_t end) {
    if (!joined.empty() && begin <= joined.back().end) joined.back().end = std::max(joined.back().end, end);
    else joined.push_back({begin, end, {}});
  }

  static std::int64_t overlap(const std::vector<Range>& joined, std::int64_t begin, std::int64_t end) {
    auto at = std::lower_bound(joined.begin(), joined.end(), begin, [](const Range& range, std::int64_t time) { return range.end <= time; });
    std::int64_t sum = 0;
    for (; at != joined.end() && at->begin < end; ++at) sum += std::min(end, at->end) - std::max(begin, at->begin);
    return sum;
  }

  void add_wait(const std::string& name, std::int64_t time, ClassifiedStep& out) const {
    const auto kind = wait_by_collective(name, request_);
    if (kind) out.wait_ns[static_cast<std::size_t>(*kind)] += time;
    else out.unclassified_ns += time;
    CallSite& site = out.sites[name];
    site.time_ns += time;
    ++site.calls;
    site.wait = kind ? std::string(to_text(*kind)) : "unclassified";
  }

  const std::string& path_;
  const ClassifyRequest& request_;
  Database database_;
  std::vector<Range> steps_;
  std::string problem_;
};

}  // namespace

Result<std::vector<ClassifiedStep>> classify_nsight(const std::string& path, const ClassifyRequest& request) { return NsightExport(path, request).run(); }

}  // namespace nd::traces
