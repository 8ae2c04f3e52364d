// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "report/validation_pattern.hpp"
#include "report/validation_rules.hpp"

namespace nd::report {
namespace {

std::string text_of(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : std::string(); }

struct TextColumn {
  std::string_view name;
  std::string MeasuredRow::*member;
};
constexpr TextColumn kTextColumns[] = {
    {"source", &MeasuredRow::source},       {"model", &MeasuredRow::model},     {"device", &MeasuredRow::device},
    {"zero_stage_or_fsdp", &MeasuredRow::zero}, {"recompute", &MeasuredRow::recompute}, {"dtype", &MeasuredRow::dtype},
    {"notes", &MeasuredRow::notes},         {"framework", &MeasuredRow::framework},
    {"framework_version", &MeasuredRow::framework_version},
};
struct CountColumn {
  std::string_view name;
  std::optional<std::int64_t> MeasuredRow::*member;
};
constexpr CountColumn kCountColumns[] = {
    {"hidden", &MeasuredRow::hidden}, {"layers", &MeasuredRow::layers},   {"heads", &MeasuredRow::heads}, {"experts", &MeasuredRow::experts},
    {"devices", &MeasuredRow::devices}, {"dp", &MeasuredRow::dp},         {"tp", &MeasuredRow::tp},       {"pp", &MeasuredRow::pp},
    {"cp", &MeasuredRow::cp},         {"ep", &MeasuredRow::ep},           {"vpp", &MeasuredRow::vpp},     {"mbs", &MeasuredRow::mbs},
    {"gbs", &MeasuredRow::gbs},       {"ffn", &MeasuredRow::ffn},         {"vocab", &MeasuredRow::vocab},
};

std::optional<std::vector<std::string>> any_pattern(const Condition& condition, std::string_view text) {
  for (const std::string& pattern : condition.patterns)
    if (auto captures = match_pattern(pattern, text)) return captures;
  return std::nullopt;
}

std::optional<std::vector<std::string>> match_condition(const Condition& condition, const MeasuredRow& row) {
  if (condition.column != "note") return any_pattern(condition, column_text(row, condition.column).value_or(""));
  for (const std::string& phrase : note_phrases(row.notes))
    if (auto captures = any_pattern(condition, phrase)) return captures;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> column_text(const MeasuredRow& row, std::string_view column) {
  if (column == "file") return row.file_name();
  if (column == "note") return row.notes;
  if (column == "seq_len") return row.seq_len ? text_of(std::llround(*row.seq_len)) : std::string();
  if (column == "sp") return row.sp ? std::string(*row.sp ? "1" : "0") : std::string();
  for (const TextColumn& entry : kTextColumns)
    if (entry.name == column) return row.*entry.member;
  for (const CountColumn& entry : kCountColumns)
    if (entry.name == column) return text_of(row.*entry.member);
  return std::nullopt;
}

std::optional<std::vector<std::string>> RowMatch::captures(const MeasuredRow& row) const {
  std::vector<std::string> out;
  for (const Condition& condition : when) {
    auto found = match_condition(condition, row);
    if (!found) return std::nullopt;
    out.insert(out.end(), found->begin(), found->end());
  }
  for (const Condition& condition : unless)
    if (match_condition(condition, row)) return std::nullopt;
  return out;
}

const QuarantineRule* find_quarantine(const RuleBook& book, const MeasuredRow& row) {
  for (const QuarantineRule& rule : book.quarantine)
    if (rule.match.captures(row)) return &rule;
  return nullptr;
}

}  // namespace nd::report
