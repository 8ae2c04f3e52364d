// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/device.hpp"

namespace nd::formats {

/// What a field of a data file holds. From `rate` on the field is a figure: {value, kind, source[, note]}.
enum class FieldType {
  text,
  texts,             ///< a list of strings
  integer,           ///< a whole number from 1 on
  extent,            ///< a whole number from 1 on, or "unbounded" (read as 0)
  table,             ///< {kind, source, columns, rows[, note]}: checked for shape and provenance, kept as evidence
  rate,              ///< figure, FLOP/s
  bandwidth,         ///< figure, bytes/s
  bytes,             ///< figure, bytes
  seconds,           ///< figure, seconds
  seconds_per_byte,  ///< figure, "2.8 ms/GiB"
  number,            ///< figure, dimensionless, not negative
  count,             ///< figure, a whole number from 1 on
  fraction           ///< figure, dimensionless, above 0 and up to 1.5 (a fit may exceed its reference)
};

/// One row of a data file's schema. `pattern` is a dotted path; the component "*" stands for any key, "#" for an element of a
/// list of mappings, which is known by its `name`.
struct FieldRule {
  std::string_view pattern;
  FieldType type = FieldType::text;
  bool required = false;
};

/// A field as read. Amounts are in base units (bytes, seconds, FLOP/s).
struct Field {
  double number = 0;
  std::string text;
  std::vector<std::string> texts;
  std::optional<FigureSource> source;  ///< of figures and tables
  SourceRef where;
};

/// The fields of a document by path ("network.levels.node.bandwidth"), list elements in document order in `lists`.
struct FieldMap {
  std::map<std::string, Field, std::less<>> fields;
  std::map<std::string, std::vector<std::string>, std::less<>> lists;  ///< names of the elements of each "#" list

  [[nodiscard]] const Field* find(std::string_view path) const;
  /// The number of a field, `fallback` when it is absent.
  [[nodiscard]] double number(std::string_view path, double fallback = 0) const;
  [[nodiscard]] std::string text(std::string_view path) const;
};

/// Citations by key: the `sources` section of a data file.
using Citations = std::map<std::string, std::string, std::less<>>;

/// Reads `sources: {key: {citation[, date]}}`. Problems go to `sink`.
[[nodiscard]] Citations read_citations(const ConfigNode& root, std::vector<Diagnostic>& sink);

/// The value node and the provenance of one figure.
struct Figure {
  const ConfigNode* value = nullptr;
  FigureSource source;
};
/// Reads {value, kind, source[, note]}. Reported: another shape, an unknown key, a missing or unknown kind or source.
[[nodiscard]] std::optional<Figure> read_figure(const ConfigNode& node, const Citations& citations, std::vector<Diagnostic>& sink);

/// Reads a whole document by its rules, `sources` included. Reported, all at once and with positions: unknown keys (with the
/// nearest), missing required fields, wrong types, figures without unit, kind or source.
[[nodiscard]] FieldMap read_fields(const ConfigNode& root, std::span<const FieldRule> rules, std::vector<Diagnostic>& sink);

/// The text of `schema:` must be `expected`; reported otherwise.
void check_schema(const ConfigNode& root, std::string_view expected, std::vector<Diagnostic>& sink);
/// True when a diagnostic of severity error is among them.
[[nodiscard]] bool has_error(const std::vector<Diagnostic>& sink);

}  // namespace nd::formats
