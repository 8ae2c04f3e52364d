// SPDX-License-Identifier: Apache-2.0
#include "nd/validation.hpp"

#include <algorithm>
#include <cstddef>

#include "formats/readers/measured.hpp"
#include "report/validation_left_out.hpp"
#include "report/validation_mapping.hpp"
#include "report/validation_peers.hpp"
#include "report/validation_pricer.hpp"
#include "report/validation_rules.hpp"
#include "search/parallel.hpp"

namespace nd {

std::optional<double> ValidatedRow::time_error() const {
  if (!skipped.empty() || time_quarantined || !measured_step_time_s || !predicted_step_time_s) return std::nullopt;
  return *predicted_step_time_s / *measured_step_time_s - 1.0;
}

std::optional<double> ValidatedRow::memory_error() const {
  if (!skipped.empty() || memory_quarantined || !measured_peak_mem_gib || !predicted_peak_mem_gib) return std::nullopt;
  return *predicted_peak_mem_gib / *measured_peak_mem_gib - 1.0;
}

std::optional<double> ValidatedRow::left_out_memory_error() const {
  if (!memory_error() || !left_out_peak_mem_gib) return std::nullopt;
  return *left_out_peak_mem_gib / *measured_peak_mem_gib - 1.0;
}

const char* to_text(MemoryCounter counter) {
  constexpr std::array<const char*, 3> kText{"allocated", "reserved", "device"};
  return kText.at(static_cast<std::size_t>(counter));
}
const char* to_text(MemoryStage stage) {
  constexpr std::array<const char*, 4> kText{"maximum", "this_rank", "first_stage", "last_stage"};
  return kText.at(static_cast<std::size_t>(stage));
}
const char* to_text(ReadingTime time) { return time == ReadingTime::steady ? "steady" : "first_iteration"; }

Result<std::vector<MeasuredRow>> read_measured_rows(const std::string& path) { return formats::read_measured_table(path); }

namespace {

/// Signed errors of one group of rows.
struct Errors {
  std::vector<double> time, memory;
  [[nodiscard]] ValidationSummary summary() const { return {error_statistics(time), error_statistics(memory)}; }
};

void count_fit(const ValidatedRow& row, FitCounts& counts) {
  if (!row.fit) return;
  const bool failed = row.measured.out_of_memory();
  // A row without a measurement proves nothing about fitting.
  if (!failed && !row.measured_step_time_s && !row.measured_peak_mem_gib) return;
  // Neither does one that leaves open what decides.
  if (row.measured.recompute.empty() || !row.measured.mbs) return;
  switch (*row.fit) {
    case Fit::yes: ++(failed ? counts.failed_yes : counts.ran_yes); break;
    case Fit::tight: ++(failed ? counts.failed_tight : counts.ran_tight); break;
    case Fit::no: ++(failed ? counts.failed_no : counts.ran_no); break;
  }
}

void summarize(ValidationReport& report) {
  Errors overall;
  std::map<std::string, Errors> files, devices, frameworks;
  std::vector<SweepPoint> points;
  for (const ValidatedRow& row : report.rows) {
    if (row.priced()) ++report.priced;
    if (!row.quarantined.empty()) ++report.quarantined;
    else if (!row.skipped.empty()) ++report.skipped;
    if (!row.skipped.empty()) continue;
    const std::string framework = row.framework + (row.framework_version.empty() ? "" : " " + row.framework_version);
    Errors& file = files[row.measured.file_name()];
    Errors& device = devices[row.device];
    Errors& trainer = frameworks[framework];
    if (const auto error = row.time_error()) {
      file.time.push_back(*error);
      if (!row.memory_only)
        for (Errors* group : {&overall, &device, &trainer}) group->time.push_back(*error);
    }
    if (const auto error = row.memory_error())
      for (Errors* group : {&overall, &file, &device, &trainer}) group->memory.push_back(*error);
    count_fit(row, report.fit);
    count_fit(row, report.fit_files[row.measured.file_name()]);
    if (row.time_error() && !row.memory_only) points.push_back(report::sweep_point(row));
  }
  report.overall = overall.summary();
  for (const auto& [name, errors] : files) report.files[name] = errors.summary();
  for (const auto& [name, errors] : devices) report.devices[name] = errors.summary();
  for (const auto& [name, errors] : frameworks) report.frameworks[name] = errors.summary();
  report.sweeps = find_sweeps(points);
}

/// What a reader of the totals must know: rows of devices without a file, and that there is nothing to total.
void note_unpriced(ValidationReport& report) {
  std::map<std::string, std::vector<const ValidatedRow*>> unknown;
  std::map<std::string, std::int64_t> reasons;
  for (const ValidatedRow& row : report.rows) {
    if (row.unknown_device) unknown[row.measured.device].push_back(&row);
    if (!row.priced()) ++reasons[row.skipped];
  }
  for (const auto& [name, rows] : unknown) {
    Diagnostic note = make_diagnostic(Errc::out_of_range, SourceRef{rows.front()->measured.file, rows.front()->measured.line, 0, "device"},
                                      "no device file is named '" + name + "': " + std::to_string(rows.size()) + " rows are not priced");
    note.severity = Severity::warning;
    report.notes.push_back(std::move(note));
  }
  if (report.priced > 0) return;
  const auto most = std::max_element(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  report.notes.push_back(make_diagnostic(Errc::empty_space, {}, "none of the " + std::to_string(report.rows.size()) + " rows could be priced",
                                         "most often: " + most->first));
}

/// Keeps the figures that a rule names out of every error; a row with none left is out altogether.
void apply_quarantine(const report::QuarantineRule& rule, ValidatedRow& row) {
  using report::QuarantinedFigure;
  row.quarantined = rule.reason;
  row.time_quarantined = rule.figure != QuarantinedFigure::memory;
  row.memory_quarantined = rule.figure != QuarantinedFigure::time;
  const bool time_left = row.measured_step_time_s && !row.time_quarantined;
  const bool memory_left = row.measured_peak_mem_gib && !row.memory_quarantined;
  if (!time_left && !memory_left) row.skipped = "quarantine: " + rule.reason;
}

/// Prices the memory of every scored row once more without what only its own file taught.
void leave_sources_out(const std::vector<report::MappedRow>& mapped, const report::RowPricer& pricer, const FrameworkProfile& fallback,
                       std::vector<ValidatedRow>& rows) {
  report::FittedEvidence evidence;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const auto* profile = pricer.profile(mapped[i]); profile && rows[i].memory_error()) evidence.add(*profile, rows[i].measured.file_name());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].memory_error()) continue;
    const FrameworkProfile without = evidence.without(*pricer.profile(mapped[i]), fallback, rows[i].measured.file_name());
    rows[i].left_out_peak_mem_gib = pricer.peak_with(without, rows[i], mapped[i]);
  }
}

}  // namespace

Result<ValidationReport> validate_rows(const std::vector<MeasuredRow>& rows, const DataStore& data, int jobs) {
  if (rows.empty()) return make_error(Errc::missing_field, {}, "the tables hold no rows");
  const auto book = report::load_rule_book(data);
  if (!book) return book.error();
  search::LoopOptions loop;
  loop.jobs = jobs;
  loop.grain = 16;  // rows; a row costs some tens of microseconds
  std::vector<report::MappedRow> mapped(rows.size());
  search::parallel_for_index(rows.size(), loop, [&](const search::LoopChunk& chunk) {
    for (std::size_t i = chunk.begin; i < chunk.end; ++i) mapped[i] = report::map_row(rows[i], *book);
  });
  report::RowPricer pricer(data);
  for (const report::MappedRow& row : mapped) pricer.prepare(row);
  if (!pricer.problems().empty()) return Error(pricer.problems());
  ValidationReport out;
  out.rows.resize(rows.size());
  search::parallel_for_index(rows.size(), loop, [&](const search::LoopChunk& chunk) {
    for (std::size_t i = chunk.begin; i < chunk.end; ++i) {
      out.rows[i] = pricer.price(rows[i], mapped[i]);
      if (!out.rows[i].skipped.empty()) continue;
      if (const report::QuarantineRule* rule = report::find_quarantine(*book, rows[i])) apply_quarantine(*rule, out.rows[i]);
    }
  });
  // Test data without a generic profile has nothing to fall back to.
  if (const auto generic = data.framework("generic", "", {})) leave_sources_out(mapped, pricer, *generic, out.rows);
  summarize(out);
  note_unpriced(out);
  auto peers = report::compare_peers(out, data);
  if (!peers) return peers.error();
  out.peers = *std::move(peers);
  return out;
}

}  // namespace nd
