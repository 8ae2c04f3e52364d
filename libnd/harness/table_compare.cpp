// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.hpp"
#include "formats/csv.hpp"
#include "nd/bench.hpp"

namespace nd {

namespace {

using Row = std::map<std::string, std::string>;
using Keyed = std::map<std::string, Row>;

std::string key_of(const Row& row, const Words& keys) {
  std::string out;
  for (const auto& key : keys) {
    const auto found = row.find(key);
    out += (out.empty() ? "" : ", ") + key + "=" + (found == row.end() ? "" : found->second);
  }
  return out;
}

std::optional<double> figure(const Row& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end()) return std::nullopt;
  const auto value = core::parse_real(found->second);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

Keyed keyed(const formats::CsvTable& table, const Words& keys, std::vector<Diagnostic>& problems) {
  Keyed out;
  for (const auto& record : table.rows) {
    Row row;
    for (std::size_t i = 0; i < table.header.size(); ++i) row[table.header[i]] = record.cells[i];
    const auto key = key_of(row, keys);
    if (!out.emplace(key, std::move(row)).second)
      problems.push_back(make_diagnostic(Errc::conflict, {table.file, record.line, 0, {}}, "a second row has " + key, "name more columns as keys (--keys)"));
  }
  return out;
}

bool in_both(const formats::CsvTable& a, const formats::CsvTable& b, const std::string& column) { return a.column(column) && b.column(column); }

}  // namespace

bool TableComparison::regressed() const {
  return !failed.empty() || std::any_of(differences.begin(), differences.end(), [](const TableDifference& one) { return one.regression; });
}

CompareRule default_compare_rule() {
  // Thresholds: between versions of the public A100 table of fms-acceleration throughput changed by 7.2 % and allocated memory by 3.7 % at the
  // 90th to 95th percentile, the driver's figure by 14 % at the 95th [measured].
  return {{"framework_config", "peft_method", "model_name_or_path", "num_gpus", "per_device_train_batch_size", "gradient_accumulation_steps", "packing", "max_seq_len", "torch_dtype"},
          {{"train_tokens_per_second", true, 0.1},
           {"tokens_per_s_per_device", true, 0.1},
           {"step_time_s", false, 0.1},
           {"mem_peak_torch_mem_alloc_in_bytes", false, 0.04},
           {"mem_torch_mem_alloc_in_bytes", false, 0.04},
           {"mem_allocated_peak_bytes", false, 0.04},
           {"mem_nvidia_mem_reserved", false, 0.15}}};
}

Result<TableComparison> compare_tables(const std::string& reference, const std::string& measured, const CompareRule& rule) {
  const auto old_table = formats::read_csv(reference), new_table = formats::read_csv(measured);
  std::vector<Diagnostic> problems;
  if (!old_table) problems = old_table.error().diagnostics;
  if (!new_table) problems.insert(problems.end(), new_table.error().diagnostics.begin(), new_table.error().diagnostics.end());
  if (!problems.empty()) return Error(std::move(problems));
  Words keys;
  for (const auto& key : rule.keys)
    if (in_both(*old_table, *new_table, key)) keys.push_back(key);
  std::vector<CompareRule::Metric> metrics;
  for (const auto& metric : rule.metrics)
    if (in_both(*old_table, *new_table, metric.column)) metrics.push_back(metric);
  if (keys.empty()) problems.push_back(make_diagnostic(Errc::missing_field, {measured, 1, 0, {}}, "shares no key column with " + reference, "--keys a,b"));
  if (metrics.empty()) problems.push_back(make_diagnostic(Errc::missing_field, {measured, 1, 0, {}}, "shares no metric with " + reference, "--metrics a,b"));
  if (!problems.empty()) return Error(std::move(problems));
  const auto before = keyed(*old_table, keys, problems), after = keyed(*new_table, keys, problems);
  if (!problems.empty()) return Error(std::move(problems));
  TableComparison out;
  for (const auto& [key, row] : after)
    if (before.count(key) == 0) out.fresh.push_back(key);
  for (const auto& [key, old_row] : before) {
    const auto found = after.find(key);
    if (found == after.end()) {
      out.missing.push_back(key);
      continue;
    }
    ++out.common;
    const Row& new_row = found->second;
    bool differs = false;
    for (const auto& metric : metrics) {
      const auto was = figure(old_row, metric.column), is = figure(new_row, metric.column);
      if (was && !is) out.failed.push_back(key + ": " + metric.column);
      if (!was || !is || *was == 0) continue;
      const double relative = *is / *was - 1;
      if (std::abs(relative) <= metric.threshold) continue;
      out.differences.push_back({key, metric.column, *was, *is, relative, (relative > 0) != metric.higher_is_better});
      differs = true;
    }
    if (!differs) continue;
    for (const auto& [column, value] : old_row) {
      const std::string& name = column;  // bindings cannot be captured
      const auto now = new_row.find(name);
      const bool number = core::parse_real(value).has_value() && value.find('.') != std::string::npos;  // measured, not set
      if (now != new_row.end() && now->second != value && !number && std::none_of(metrics.begin(), metrics.end(), [&](const auto& one) { return one.column == name; }))
        out.differing_arguments.push_back(key + ": " + column + " " + value + " -> " + now->second);
    }
  }
  return out;
}

std::string to_text(const TableComparison& comparison) {
  std::string out = fmt::format("{} runs in both tables\n", comparison.common);
  for (const auto& one : comparison.differences)
    out += fmt::format("{:<11} {} {:.6g} -> {:.6g} ({:+.1f} %)  {}\n", one.regression ? "regression" : "improvement", one.metric, one.reference, one.measured, one.relative * 100, one.key);
  const auto list = [&](const char* title, const Words& lines) {
    for (const auto& line : lines) out += fmt::format("{:<11} {}\n", title, line);
  };
  list("failed", comparison.failed);
  list("missing", comparison.missing);
  list("new", comparison.fresh);
  list("argument", comparison.differing_arguments);
  return out;
}

}  // namespace nd
