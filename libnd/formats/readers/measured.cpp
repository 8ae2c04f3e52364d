// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/measured.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/text.hpp"
#include "formats/csv.hpp"

namespace nd::formats {
namespace {

struct TextColumn {
  const char* name;
  std::string MeasuredRow::*member;
  bool required;  ///< of every table
};
constexpr TextColumn kTexts[] = {
    {"source", &MeasuredRow::source, true},       {"model", &MeasuredRow::model, true},
    {"device", &MeasuredRow::device, true},       {"zero_stage_or_fsdp", &MeasuredRow::zero, false},
    {"recompute", &MeasuredRow::recompute, false}, {"dtype", &MeasuredRow::dtype, false},
    {"notes", &MeasuredRow::notes, false},        {"reading", &MeasuredRow::reading, false},
    {"framework", &MeasuredRow::framework, false}, {"framework_version", &MeasuredRow::framework_version, false},
};

struct CountColumn {
  const char* name;
  std::optional<std::int64_t> MeasuredRow::*member;
  bool required;
  std::int64_t least;
};
constexpr CountColumn kCounts[] = {
    {"hidden", &MeasuredRow::hidden, true, 1},   {"layers", &MeasuredRow::layers, true, 1},
    {"heads", &MeasuredRow::heads, true, 1},     {"kv_heads", &MeasuredRow::kv_heads, false, 1},
    {"head_dim", &MeasuredRow::head_dim, false, 1}, {"ffn", &MeasuredRow::ffn, false, 1},
    {"vocab", &MeasuredRow::vocab, true, 1},     {"experts", &MeasuredRow::experts, false, 0},
    {"topk", &MeasuredRow::topk, false, 0},      {"moe_ffn", &MeasuredRow::moe_ffn, false, 0},
    {"shared_experts", &MeasuredRow::shared_experts, false, 0}, {"devices", &MeasuredRow::devices, true, 1},
    {"dp", &MeasuredRow::dp, true, 1},           {"tp", &MeasuredRow::tp, true, 1},
    {"pp", &MeasuredRow::pp, true, 1},           {"cp", &MeasuredRow::cp, false, 1},
    {"ep", &MeasuredRow::ep, false, 1},          {"vpp", &MeasuredRow::vpp, false, 1},
    {"mbs", &MeasuredRow::mbs, false, 1},        {"gbs", &MeasuredRow::gbs, true, 1},
};

struct RealColumn {
  const char* name;
  std::optional<double> MeasuredRow::*member;
  bool required;
};
constexpr RealColumn kReals[] = {
    {"params_b", &MeasuredRow::params_b, false},
    {"seq_len", &MeasuredRow::seq_len, true},
    {"step_time_s", &MeasuredRow::step_time_s, false},
    {"tokens_per_s_per_device", &MeasuredRow::tokens_per_s_per_device, false},
    {"tflops_per_device", &MeasuredRow::tflops_per_device, false},
    {"mfu", &MeasuredRow::mfu, false},
    {"peak_mem_gib", &MeasuredRow::peak_mem_gib, false},
};
constexpr std::int64_t kLargestCount = std::int64_t{1} << 40;

/// Names of all columns, or of the required ones.
std::vector<std::string> column_names(bool only_required) {
  std::vector<std::string> out;
  const auto add = [&](const auto& table) {
    for (const auto& column : table)
      if (column.required || !only_required) out.emplace_back(column.name);
  };
  add(kTexts);
  add(kCounts);
  add(kReals);
  if (!only_required) out.emplace_back("sp");
  return out;
}

void check_header(const CsvTable& table, std::vector<Diagnostic>& sink) {
  const std::vector<std::string> known = column_names(false);
  for (const std::string& name : table.header)
    if (std::find(known.begin(), known.end(), name) == known.end())
      sink.push_back(make_diagnostic(Errc::unknown_key, SourceRef{table.file, 1, 0, name}, "no column of a measured table",
                                     core::name_hint(name, known)));
  for (const std::string& name : column_names(true))
    if (!table.column(name)) sink.push_back(make_diagnostic(Errc::missing_field, SourceRef{table.file, 1, 0, name}, "the column is missing"));
}

MeasuredRow read_row(const CsvTable& table, const CsvTable::Row& record, std::vector<Diagnostic>& sink) {
  MeasuredRow row;
  row.file = table.file;
  row.line = record.line;
  CsvRecord cells(table, record, sink);
  for (const TextColumn& column : kTexts) row.*column.member = cells.text(column.name).value_or("");
  for (const CountColumn& column : kCounts) {
    const auto value = cells.integer(column.name);
    if (!value) continue;
    if (*value < column.least || *value > kLargestCount)
      sink.push_back(make_diagnostic(Errc::out_of_range, cells.where(column.name),
                                     "must be " + std::string(column.least == 1 ? "at least 1" : "zero or more") + ", is " + std::to_string(*value)));
    else row.*column.member = value;
  }
  for (const RealColumn& column : kReals) {
    const auto value = cells.real(column.name);
    if (!value) continue;
    if (!std::isfinite(*value) || *value < 0)
      sink.push_back(make_diagnostic(Errc::out_of_range, cells.where(column.name), "must be a number that is not negative"));
    else row.*column.member = value;
  }
  row.sp = cells.boolean("sp");
  return row;
}

Result<std::vector<MeasuredRow>> read_rows(const CsvTable& table) {
  std::vector<Diagnostic> problems;
  check_header(table, problems);
  std::vector<MeasuredRow> out;
  out.reserve(table.rows.size());
  for (const CsvTable::Row& record : table.rows) out.push_back(read_row(table, record, problems));
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

}  // namespace

Result<std::vector<MeasuredRow>> parse_measured_table(std::string_view text, const std::string& path) {
  return parse_csv(text, path).and_then(read_rows);
}

Result<std::vector<MeasuredRow>> read_measured_table(const std::string& path) { return read_csv(path).and_then(read_rows); }

}  // namespace nd::formats
