// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.hpp"

#include <csv.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/text.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

/// What libcsv's callbacks fill. Exceptions must not cross the C library, so limits are flags.
struct Collector {
  std::vector<CsvTable::Row> rows;
  CsvTable::Row row;
  int line = 1;
  bool open = false;  ///< a record has begun and not ended
  std::size_t cells = 0;
};

void on_cell(void* cell, std::size_t size, void* data) {
  auto& collector = *static_cast<Collector*>(data);
  collector.row.cells.emplace_back(static_cast<const char*>(cell), size);
  ++collector.cells;
}

void on_record(int, void* data) {
  auto& collector = *static_cast<Collector*>(data);
  collector.rows.push_back(std::move(collector.row));
  collector.row = {};
  collector.open = false;
}

/// The next line with its line end (LF, CRLF or CR).
std::string_view take_line(std::string_view& text) {
  const auto end = text.find_first_of("\r\n");
  std::size_t size = std::min(end, text.size() - 1) + 1;
  if (end != std::string_view::npos && text[end] == '\r' && size < text.size() && text[size] == '\n') ++size;
  const std::string_view line = text.substr(0, size);
  text.remove_prefix(size);
  return line;
}

SourceRef at_line(const std::string& file, int line, int column = 0, std::string path = {}) { return {file, line, column, std::move(path)}; }

std::optional<Diagnostic> feed(csv_parser& parser, std::string_view text, Collector& collector, const std::string& file, std::size_t max_cells) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!collector.open && !core::trim(line).empty()) {
      collector.open = true;
      collector.row.line = collector.line;
    }
    const std::size_t read = csv_parse(&parser, line.data(), line.size(), on_cell, on_record, &collector);
    if (read != line.size()) {
      const Place place = PlaceCursor(line).at(read);
      return make_diagnostic(Errc::syntax, at_line(file, collector.line, place.column), "a quote inside a cell that is not quoted",
                             "quote the whole cell and double the quotes inside");
    }
    if (collector.cells > max_cells)
      return make_diagnostic(Errc::out_of_range, at_line(file, collector.line), "more than " + std::to_string(max_cells) + " cells");
    ++collector.line;
  }
  const int begun = collector.row.line;
  if (csv_fini(&parser, on_cell, on_record, &collector) != 0)
    return make_diagnostic(Errc::syntax, at_line(file, begun), "the record that starts here has a quote that is not closed");
  return std::nullopt;
}

void check_header(const CsvTable& table, int line, std::vector<Diagnostic>& problems) {
  std::set<std::string> seen;
  for (const auto& name : table.header) {
    if (name.empty()) problems.push_back(make_diagnostic(Errc::syntax, at_line(table.file, line), "a column without a name"));
    else if (!seen.insert(name).second)
      problems.push_back(make_diagnostic(Errc::duplicate_key, at_line(table.file, line, 0, name), "the column '" + name + "' stands twice"));
  }
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

Result<CsvTable> parse_csv(std::string_view text, const std::string& file, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    return make_error(Errc::out_of_range, at_line(file, 0), "larger than " + std::to_string(limits.max_bytes) + " bytes");
  if (auto problem = text_problem(text, file)) return Error(*std::move(problem));
  csv_parser parser{};
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI);
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> release(&parser, csv_free);
  Collector collector;
  if (auto problem = feed(parser, without_bom(text), collector, file, limits.max_nodes)) return Error(*std::move(problem));

  CsvTable table;
  table.file = file;
  table.header = std::move(collector.rows.front().cells);
  std::vector<Diagnostic> problems;
  check_header(table, collector.rows.front().line, problems);
  for (std::size_t i = 1; i < collector.rows.size(); ++i) {
    auto& row = collector.rows[i];
    if (row.cells.size() != table.header.size())
      problems.push_back(make_diagnostic(Errc::syntax, at_line(file, row.line),
                                         "has " + std::to_string(row.cells.size()) + " cells, the header has " + std::to_string(table.header.size())));
    table.rows.push_back(std::move(row));
  }
  if (!problems.empty()) return Error(std::move(problems));
  return table;
}

Result<CsvTable> read_csv(const std::string& path, const ParseLimits& limits) {
  const auto text = read_text_file(path, limits);
  if (!text) return text.error();
  return parse_csv(*text, path, limits);
}

std::optional<std::string> CsvRecord::text(std::string_view column) const {
  const auto index = table_.column(column);
  if (!index || row_.cells[*index].empty()) return std::nullopt;
  return row_.cells[*index];
}

SourceRef CsvRecord::where(std::string_view column) const { return at_line(table_.file, row_.line, 0, std::string(column)); }

void CsvRecord::wrong(std::string_view column, std::string_view wanted, const std::string& cell) {
  constexpr std::size_t kShown = 40;
  sink_.push_back(make_diagnostic(Errc::wrong_type, where(column), "must be " + std::string(wanted) + ", is '" + cell.substr(0, kShown) + "'"));
}

std::optional<double> CsvRecord::real(std::string_view column) {
  const auto cell = text(column);
  if (!cell) return std::nullopt;
  const auto value = core::parse_real(*cell);
  if (!value) wrong(column, "a number", *cell);
  return value;
}

std::optional<std::int64_t> CsvRecord::integer(std::string_view column) {
  const auto cell = text(column);
  if (!cell) return std::nullopt;
  if (const auto value = core::parse_integer(*cell)) return value;
  ConfigNode node;
  node.kind = NodeKind::scalar;
  node.text = *cell;
  // Only "2.0" and "1e3" are left for the scalar table: its octal and hexadecimal forms are no CSV.
  if (core::parse_real(*cell))
    if (const auto value = as_integer(node)) return value;
  wrong(column, "an integer", *cell);
  return std::nullopt;
}

std::optional<bool> CsvRecord::boolean(std::string_view column) {
  const auto cell = text(column);
  if (!cell) return std::nullopt;
  const std::string name = core::canonical_name(*cell);
  if (name == "1" || name == "true" || name == "yes") return true;
  if (name == "0" || name == "false" || name == "no") return false;
  wrong(column, "true or false", *cell);
  return std::nullopt;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& cell = cells[i];
    if (i > 0) out += ',';
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    // A record of one empty cell would be a blank line.
    const bool quoted = cell.find_first_of(",\"\r\n") != std::string::npos || (cell.empty() && cells.size() == 1) ||
                        (!cell.empty() && (is_space(cell.front()) || is_space(cell.back())));
    if (!quoted) {
      out += cell;
      continue;
    }
    std::string buffer(2 * cell.size() + 2, '\0');
    buffer.resize(csv_write(buffer.data(), buffer.size(), cell.data(), cell.size()));
    out += buffer;
  }
  return out + "\n";
}

}  // namespace nd::formats
