// SPDX-License-Identifier: Apache-2.0
#include "report/validation_memory_tables.hpp"

#include <array>
#include <map>

namespace nd::report {
namespace {

constexpr std::int64_t kWide = 1024;  // hidden size from which a model is no toy

struct Errors {
  std::vector<double> as_priced, left_out;

  void add(const ValidatedRow& row) {
    as_priced.push_back(*row.memory_error());
    if (const auto error = row.left_out_memory_error()) left_out.push_back(*error);
  }
  [[nodiscard]] MemoryGroup group(const std::string& name) const {
    return {name, error_statistics(as_priced), error_statistics(left_out)};
  }
};

}  // namespace

std::vector<MemoryGroup> memory_by_reading(const ValidationReport& report) {
  constexpr std::array<const char*, 4> kNames{"allocated, hidden size from 1024", "allocated, smaller models", "reserved and device", "allocated, by stage"};
  std::array<Errors, 4> groups;
  for (const ValidatedRow& row : report.rows) {
    if (!row.memory_error()) continue;
    const bool counter = row.reading.counter == MemoryCounter::allocated;
    const bool wide = row.measured.hidden.value_or(0) >= kWide;
    groups[counter ? (wide ? 0 : 1) : 2].add(row);
    for (const StagePeak& stage : row.stage_peaks) groups[3].as_priced.push_back(stage.predicted_gib / stage.measured_gib - 1.0);
  }
  std::vector<MemoryGroup> out;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (!groups[i].as_priced.empty()) out.push_back(groups[i].group(kNames[i]));
  return out;
}

std::vector<MemoryGroup> memory_by_source(const ValidationReport& report) {
  std::map<std::string, Errors> files;
  Errors all;
  for (const ValidatedRow& row : report.rows) {
    if (!row.memory_error()) continue;
    files[row.measured.file_name()].add(row);
    all.add(row);
  }
  std::vector<MemoryGroup> out;
  for (const auto& [name, errors] : files) out.push_back(errors.group(name));
  if (!out.empty()) out.push_back(all.group("all"));
  return out;
}

PeakCoverage peak_coverage(const ValidationReport& report) {
  PeakCoverage out;
  for (const ValidatedRow& row : report.rows) {
    if (row.measured.out_of_memory() || !(row.measured.peak_mem_gib.value_or(0) > 0)) continue;
    ++out.stated;
    if (row.measured_peak_mem_gib && row.predicted_peak_mem_gib) ++out.priced;
  }
  return out;
}

}  // namespace nd::report
