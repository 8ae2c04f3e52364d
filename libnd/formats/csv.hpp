// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// A comma-separated table with a header row. Cells are texts without the space around them (space inside quotes stays).
struct CsvTable {
  struct Row {
    int line = 0;  ///< of the file, where the record starts
    std::vector<std::string> cells;  ///< as many as the header has
  };
  std::string file;
  std::vector<std::string> header;
  std::vector<Row> rows;

  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

/// RFC 4180 with LF, CRLF or CR line ends, a BOM, quoted cells that span lines; blank lines are skipped. Errors, all at once
/// where the rest can still be read: syntax (a quote inside an unquoted cell, an unclosed quote, a record with another number of
/// cells than the header, an empty header cell, not UTF-8), duplicate_key (a column name twice), out_of_range (limits; a cell
/// counts as a node).
[[nodiscard]] Result<CsvTable> parse_csv(std::string_view text, const std::string& file, const ParseLimits& limits = {});
/// parse_csv of a file; also io.
[[nodiscard]] Result<CsvTable> read_csv(const std::string& path, const ParseLimits& limits = {});

/// Typed access to one row. An absent column or an empty cell is nullopt; a cell of another type is reported (wrong_type, with
/// line and column name) and is nullopt. Thread-compatible.
class CsvRecord {
 public:
  /// All three must outlive the record.
  CsvRecord(const CsvTable& table, const CsvTable::Row& row, std::vector<Diagnostic>& sink) : table_(table), row_(row), sink_(sink) {}

  [[nodiscard]] std::optional<std::string> text(std::string_view column) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view column);  ///< also a real that is whole
  [[nodiscard]] std::optional<double> real(std::string_view column);
  [[nodiscard]] std::optional<bool> boolean(std::string_view column);  ///< 0 1 true false yes no, any case
  [[nodiscard]] SourceRef where(std::string_view column) const;

 private:
  void wrong(std::string_view column, std::string_view wanted, const std::string& cell);
  const CsvTable& table_;
  const CsvTable::Row& row_;
  std::vector<Diagnostic>& sink_;
};

/// One record with its line end "\n"; cells are quoted only where they must be. parse_csv reads it back unchanged.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& cells);

}  // namespace nd::formats
