// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nd/report.hpp"
#include "report/strategy_text.hpp"
#include "report/text_table.hpp"

namespace nd {

namespace {

using report::Align;
using report::short_count;
using report::short_seconds;
using report::TextTable;
using report::with_thousands;

bool priced_in_money(const Study& study) {
  return study.tokens && std::any_of(study.rows.begin(), study.rows.end(), [](const StudyRow& row) { return row.price_per_hour.has_value(); });
}

std::string whole(double value) { return with_thousands(std::llround(value)); }

/// Days with as many decimals as say something.
std::string days_text(double days) { return fmt::format("{:.{}f}", days, days < 10 ? 2 : days < 100 ? 1 : 0); }

/// The columns that both kinds of study end with.
class Columns {
 public:
  explicit Columns(const Study& study) : study_(study), money_(priced_in_money(study)) {}

  void heads(std::vector<TextTable::Column>& to) const {
    for (const char* head : {"step", "tokens/s", "tokens/s/device", "MFU"}) to.push_back({head, Align::right});
    if (study_.tokens)
      for (const char* head : {"days", "device-hours"}) to.push_back({head, Align::right});
    if (money_) to.push_back({"cost", Align::right});
  }
  void cells(const StudyRow& row, std::vector<std::string>& to) const {
    const auto& best = *row.best;
    to.push_back(short_seconds(best.time.step.value));
    to.push_back(whole(row.tokens_per_second()));
    to.push_back(fmt::format("{:.0f}", best.tokens_per_second));
    to.push_back(best.mfu ? fmt::format("{:.1f} %", 100 * *best.mfu) : "-");
    if (study_.tokens) {
      to.push_back(days_text(row.days(*study_.tokens)));
      to.push_back(whole(row.device_hours(*study_.tokens)));
    }
    if (money_) to.push_back(row.cost(*study_.tokens) ? whole(*row.cost(*study_.tokens)) : "-");
  }

 private:
  const Study& study_;
  bool money_;
};

/// What stands where a row has no strategy.
std::string no_answer(const StudyRow& row) {
  if (!row.problem.empty()) return "not possible: " + row.problem;
  if (row.nearest) return "nothing fits: the closest " + report::shortage(row.nearest->memory, row.nearest->largest_part, row.nearest->largest);
  return "nothing fits: no legal strategy";
}

/// Whether the rows that were searched differ in a field.
bool varies(const Study& study, std::int64_t StudyRow::*field) {
  const StudyRow* first = nullptr;
  for (const auto& row : study.rows) {
    if (!row.problem.empty()) continue;
    if (first == nullptr) first = &row;
    if (row.*field != first->*field) return true;
  }
  return false;
}

std::string title(const StudyReport& report) {
  const auto first = std::find_if(report.study.rows.begin(), report.study.rows.end(), [](const StudyRow& row) { return row.problem.empty(); });
  std::string out = report.model + ", " + report.framework;
  if (first == report.study.rows.end()) return out + "\n";
  if (report.study.kind == Study::Kind::cluster_size) out += ", " + first->device;
  if (!varies(report.study, &StudyRow::seq_length)) out += fmt::format(", sequence {}", first->seq_length);
  if (!varies(report.study, &StudyRow::global_batch)) out += fmt::format(", global batch {}", first->global_batch);
  if (report.study.tokens) out += fmt::format(", {} tokens", short_count(*report.study.tokens));
  return out + "\n\n";
}

std::string what_if_table(const StudyReport& report) {
  const Study& study = report.study;
  const Columns columns(study);
  std::vector<TextTable::Column> heads{{"what if", Align::left}};
  const bool sequence = varies(study, &StudyRow::seq_length), batch = varies(study, &StudyRow::global_batch);
  heads.push_back({"devices", Align::right});
  if (sequence) heads.push_back({"sequence", Align::right});
  if (batch) heads.push_back({"batch", Align::right});
  columns.heads(heads);
  heads.push_back({"speed", Align::right});
  heads.push_back({"memory", Align::right});
  heads.push_back({"best strategy", Align::left});
  TextTable table(heads);
  const StudyRow& base = study.rows.front();
  std::vector<std::string> unanswered;
  bool tie = false;
  for (const StudyRow& row : study.rows) {
    if (!row.best) {
      unanswered.push_back(row.name + ": " + no_answer(row));
      continue;
    }
    std::vector<std::string> cells{row.name + (row.framework == base.framework ? "" : " (" + row.framework + ")"), fmt::format("{} x {}", row.devices, row.device)};
    if (sequence) cells.push_back(std::to_string(row.seq_length));
    if (batch) cells.push_back(std::to_string(row.global_batch));
    columns.cells(row, cells);
    const double speed = base.best ? row.tokens_per_second() / base.tokens_per_second() - 1 : 0.0;
    const bool is_tie = &row != &base && std::abs(speed) <= row.band;
    tie = tie || (base.best && is_tie);
    if (!base.best) cells.emplace_back("-");
    else cells.push_back(&row == &base ? "- " : report::signed_percent(speed) + (is_tie ? "~" : " "));
    cells.push_back(report::memory_cell(row.best->memory));
    cells.push_back(report::short_strategy(row.best->config));
    table.add(std::move(cells));
  }
  std::string out = table.text();
  for (const auto& line : unanswered) out += line + "\n";
  out += "\nspeed: tokens per second of the whole cluster, against the request as it stands\n";
  if (tie) out += fmt::format("~ within {:.0f} %, the error of the time model: no difference can be told\n", 100 * base.band);
  return out;
}

std::string deadline_line(const Study& study) {
  if (!study.tokens || !study.deadline_days) return {};
  const std::string wanted = fmt::format("{} tokens in {} days", short_count(*study.tokens), days_text(*study.deadline_days));
  if (study.answer) {
    const auto& row = study.rows[*study.answer];
    std::string out = fmt::format("{} x {} is the smallest of these that trains {}: {} days", row.devices, row.device, wanted, days_text(row.days(*study.tokens)));
    if (row.days(*study.tokens) * (1 + row.band) > *study.deadline_days)
      out += fmt::format(", but only just: the time model errs by {:.0f} %", 100 * row.band);
    return out + ".\n\n";
  }
  const StudyRow* fastest = nullptr;
  for (const auto& row : study.rows)
    if (row.best && (fastest == nullptr || row.tokens_per_second() > fastest->tokens_per_second())) fastest = &row;
  if (fastest == nullptr) return "Nothing fits on any of these clusters.\n\n";
  return fmt::format("None of these clusters trains {}: the fastest, {} devices, needs {}.\n\n", wanted, fastest->devices, days_text(fastest->days(*study.tokens)));
}

std::string size_table(const StudyReport& report) {
  const Study& study = report.study;
  const Columns columns(study);
  std::vector<TextTable::Column> heads{{"", Align::left}, {"devices", Align::right}};
  columns.heads(heads);
  heads.push_back({"efficiency", Align::right});
  heads.push_back({"memory", Align::right});
  heads.push_back({"best strategy", Align::left});
  TextTable table(heads);
  const StudyRow* first = nullptr;
  std::vector<std::string> unanswered;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const StudyRow& row = study.rows[i];
    if (!row.best) {
      unanswered.push_back(fmt::format("{} devices: {}", row.devices, no_answer(row)));
      continue;
    }
    if (first == nullptr) first = &row;
    std::vector<std::string> cells{study.answer == i ? "->" : "", std::to_string(row.devices)};
    columns.cells(row, cells);
    cells.push_back(fmt::format("{:.0f} %", 100 * row.best->tokens_per_second / first->best->tokens_per_second));
    cells.push_back(report::memory_cell(row.best->memory));
    cells.push_back(report::short_strategy(row.best->config));
    table.add(std::move(cells));
  }
  std::string out = deadline_line(study) + (first == nullptr ? std::string() : table.text());
  for (const auto& line : unanswered) out += line + "\n";
  if (first != nullptr) out += fmt::format("\nefficiency: tokens per second and device, against {} devices\n", first->devices);
  return out;
}

}  // namespace

std::string study_table(const StudyReport& report) {
  std::string out = title(report);
  if (!report.study.complete) out += "INCOMPLETE: stopped or out of time; what follows is what was found\n\n";
  out += report.study.kind == Study::Kind::what_if ? what_if_table(report) : size_table(report);
  if (!report.defaulted.empty()) {
    std::string list;
    for (const auto& name : report.defaulted) list += (list.empty() ? "" : ", ") + name;
    out += "assumed, nobody stated it: " + list + "\n";
  }
  for (const auto& note : report.notes) out += to_text(note) + "\n";
  return out;
}

}  // namespace nd
