// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/text.hpp"
#include "formats/csv.hpp"
#include "measured/columns.hpp"
#include "measured/fms_table.hpp"
#include "nd/compare.hpp"

namespace nd {

namespace measured {

std::optional<UnitColumn> split_unit(std::string_view name, std::span<const UnitSuffix> units, double bare) {
  for (const UnitSuffix& unit : units)
    if (name.size() > unit.suffix.size() && name.ends_with(unit.suffix))
      return UnitColumn{std::string(name.substr(0, name.size() - unit.suffix.size())), unit.factor};
  if (bare <= 0) return std::nullopt;
  return UnitColumn{std::string(name), bare};
}

namespace {

constexpr double kMillisecond = 1e-3;
constexpr std::int64_t kLargestDegree = std::int64_t{1} << 24;

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> kNames{"time", "step_time", "step_trainer"};
  return kNames;
}

const std::vector<std::string>& memory_names() {
  static const std::vector<std::string> kNames{"memory", "mem", "peak_mem", "peak_memory", "mem_allocated", "mem_reserved", "memory_reserved", "peak_mem_reserved"};
  return kNames;
}

/// Measured column by the name of the classifier; sp_wait belongs to mp_wait.
std::optional<MeasuredColumn> wait_column(const std::string& base) {
  if (base == "sp_wait") return MeasuredColumn::mp_wait;
  for (std::size_t c = 1; c + 1 < kMeasuredColumnCount; ++c)
    if (to_text(static_cast<MeasuredColumn>(c)) == base) return static_cast<MeasuredColumn>(c);
  return std::nullopt;
}

/// What one column of the table is read into.
struct Column {
  enum class Kind { time, trainer, part, memory, degree, ignored } kind = Kind::ignored;
  double factor = 1;
  MeasuredColumn part = MeasuredColumn::compute;
  bool reserved = false;
  Dimension dimension = Dimension::tp;
};

class ClassifiedTable {
 public:
  explicit ClassifiedTable(const formats::CsvTable& table) : table_(table) {}

  Result<StepTable> read() {
    for (std::size_t i = 0; i < table_.header.size(); ++i) columns_.push_back(classify(table_.header[i]));
    check_header();
    StepTable out;
    out.file = table_.file;
    out.kind = TableKind::classified;
    for (const auto& row : table_.rows) out.steps.push_back(read_row(row));
    if (table_.rows.empty()) problems_.push_back(make_diagnostic(Errc::missing_field, {table_.file, 1, 0, {}}, "the table has no rows"));
    if (!problems_.empty()) return Error(std::move(problems_));
    out.notes = std::move(notes_);
    return out;
  }

 private:
  [[nodiscard]] SourceRef head(const std::string& name) const { return {table_.file, 1, 0, name}; }

  Column classify(const std::string& name) {
    const std::string lower = core::canonical_name(name);
    const auto seconds = split_unit(lower, kTimeUnits, kMillisecond);
    const std::string& base = seconds->base;
    Column out;
    out.factor = seconds->factor;
    if (base == "time" || base == "step_time") out.kind = Column::Kind::time;
    else if (base == "step_trainer") out.kind = Column::Kind::trainer;
    else if (base.starts_with("comp")) out.kind = Column::Kind::part;
    else if (const auto wait = wait_column(base)) {
      out.kind = Column::Kind::part;
      out.part = *wait;
    } else if (base.find("wait") != std::string::npos) {
      problems_.push_back(make_diagnostic(Errc::unknown_key, head(name), "no wait column that is known", core::name_hint(base, wait_names())));
    } else {
      classify_other(name, lower, out);
    }
    return out;
  }

  static std::vector<std::string> wait_names() {
    std::vector<std::string> out{"sp_wait"};
    for (std::size_t c = 1; c + 1 < kMeasuredColumnCount; ++c) out.emplace_back(to_text(static_cast<MeasuredColumn>(c)));
    return out;
  }

  void classify_other(const std::string& name, const std::string& lower, Column& out) {
    const auto& memories = memory_names();
    const auto memory = split_unit(lower, kMemoryUnits, 0);
    const auto is_memory = [&](const std::string& base) { return std::find(memories.begin(), memories.end(), base) != memories.end(); };
    if (memory && is_memory(memory->base)) {
      out.kind = Column::Kind::memory;
      out.factor = memory->factor / kGiB;
      out.reserved = lower.find("reserved") != std::string::npos;
      return;
    }
    if (is_memory(lower)) {
      problems_.push_back(make_diagnostic(Errc::missing_field, head(name), "memory without a unit", "name the column " + lower + "_gib, " + lower + "_mib or " + lower + "_gb"));
      return;
    }
    const auto dimension = parse_dimension(name, head(name));
    if (dimension) {
      out.kind = Column::Kind::degree;
      out.dimension = *dimension;
      return;
    }
    std::vector<std::string> known = step_names();
    known.emplace_back("comp");
    known.insert(known.end(), memories.begin(), memories.end());
    for (const auto& info : dimension_list()) known.emplace_back(info.acronym);
    problems_.push_back(make_diagnostic(Errc::unknown_key, head(name), "no column of a classified table: a time, a *_wait, comp, memory or a dimension", core::name_hint(name, known)));
  }

  void check_header() {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      if (column.kind == Column::Kind::ignored) continue;
      std::string id = std::to_string(static_cast<int>(column.kind));
      // mp_wait and sp_wait add up; everything else has one column.
      if (column.kind == Column::Kind::part) id += table_.header[i].starts_with("sp") ? "sp" : std::string(to_text(column.part));
      if (column.kind == Column::Kind::degree) id += std::string(dimension_info(column.dimension).name);
      if (column.kind == Column::Kind::memory && column.reserved) id += "reserved";
      if (!seen.insert(id).second)
        problems_.push_back(make_diagnostic(Errc::duplicate_key, head(table_.header[i]), "a second column for the same figure", "keep one of them"));
    }
    const bool timed = std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return c.kind == Column::Kind::time; });
    if (!timed)
      problems_.push_back(make_diagnostic(Errc::missing_field, head("time"), "the column is missing: the measured step, milliseconds (time) or seconds (time_s)",
                                          core::name_hint("time", table_.header)));
  }

  MeasuredStep read_row(const formats::CsvTable::Row& row) {
    MeasuredStep out;
    out.line = row.line;
    formats::CsvRecord cells(table_, row, problems_);
    for (std::size_t i = 0; i < columns_.size(); ++i) read_cell(cells, table_.header[i], columns_[i], out);
    if (out.time <= 0 && out.skipped.empty()) out.skipped = "no measured step time";
    if (out.skipped.empty()) check_parts(out);
    return out;
  }

  /// Exposed parts of a step are parts of it: more is another unit, a part counted twice, or hidden time.
  void check_parts(const MeasuredStep& row) {
    constexpr double kClock = 1.02;  // profilers and trainers read clocks of their own
    double parts = 0;
    for (const auto& column : row.columns) parts += column.value_or(0);
    if (!(parts > kClock * row.time)) return;
    auto warning = make_diagnostic(Errc::conflict, {table_.file, row.line, 0, {}},
                                   "comp and the waits are " + std::to_string(std::lround(100 * parts / row.time)) + " % of the step",
                                   "one of them has another unit, or counts time that is hidden behind another");
    warning.severity = Severity::warning;
    notes_.push_back(std::move(warning));
  }

  void read_cell(formats::CsvRecord& cells, const std::string& name, const Column& column, MeasuredStep& out) {
    if (column.kind == Column::Kind::ignored) return;
    if (column.kind == Column::Kind::degree) return read_degree(cells, name, column.dimension, out);
    const auto value = cells.real(name);
    if (!value) return;
    if (!std::isfinite(*value) || *value < 0) {
      problems_.push_back(make_diagnostic(Errc::out_of_range, cells.where(name), "must be a number that is not negative"));
      return;
    }
    const double amount = *value * column.factor;
    if (column.kind == Column::Kind::time) out.time = amount;
    if (column.kind == Column::Kind::trainer) out.trainer_time = amount;
    if (column.kind == Column::Kind::part) {
      auto& part = out.columns[static_cast<std::size_t>(column.part)];
      part = part.value_or(0) + amount;
    }
    if (column.kind == Column::Kind::memory && amount > 0 && (!out.memory_gib || !column.reserved)) {
      out.memory_gib = amount;
      out.memory_is_reserved = column.reserved;
    }
  }

  void read_degree(formats::CsvRecord& cells, const std::string& name, Dimension dimension, MeasuredStep& out) {
    std::optional<std::int64_t> value;
    const bool flag = dimension == Dimension::sequence_parallel;
    if (flag) {
      const auto on = cells.boolean(name);
      if (on) value = *on ? 1 : 0;
    } else if (const auto text = cells.text(name)) {
      // One mode per row: "full,selective" is two.
      const bool several = text->find_first_of(",;+ ") != std::string::npos;
      const auto parsed = several ? Result<std::int64_t>(make_error(Errc::out_of_range, cells.where(name), "more than one value: '" + *text + "'"))
                                  : parse_value(dimension, dimension == Dimension::recompute ? recompute_word(*text) : *text, cells.where(name));
      if (!parsed) {
        problems_.insert(problems_.end(), parsed.error().diagnostics.begin(), parsed.error().diagnostics.end());
        return;
      }
      value = *parsed;
    }
    if (!value) return;
    if (*value < 0 || *value > kLargestDegree) {
      problems_.push_back(make_diagnostic(Errc::out_of_range, cells.where(name), "must be from 1 to " + std::to_string(kLargestDegree)));
      return;
    }
    out.degrees[dimension] = *value;
  }

  /// Words of the predecessor and of trainers.
  static std::string recompute_word(const std::string& text) {
    const std::string word = core::canonical_name(text);
    if (word == "none" || word == "false") return "off";
    if (word == "slct") return "selective";
    return word;
  }

  const formats::CsvTable& table_;
  std::vector<Column> columns_;
  std::vector<Diagnostic> problems_, notes_;
};

}  // namespace

}  // namespace measured

const char* to_text(TableKind kind) {
  constexpr std::array<const char*, 3> kText{"classified steps", "measured runs", "benchmark results"};
  return kText.at(static_cast<std::size_t>(kind));
}

Result<StepTable> read_step_table(const std::string& path) {
  const auto table = formats::read_csv(path);
  if (!table) return table.error();
  const auto has = [&](std::string_view name) { return table->column(name).has_value(); };
  // Only a table of runs says where each row is from and what its model looks like.
  if (has("source") && has("model") && has("device")) {
    StepTable out;
    out.file = path;
    out.kind = TableKind::runs;
    return out;
  }
  if (has("train_runtime") || has("train_samples_per_second") || has("train_tokens_per_second")) return measured::read_fms_table(*table);
  return measured::ClassifiedTable(*table).read();
}

}  // namespace nd
