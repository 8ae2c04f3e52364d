// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tree/map_reader.hpp"
#include "nd/calibration.hpp"
#include "nd/data_store.hpp"
#include "nd/model_spec.hpp"
#include "nd/result.hpp"

namespace nd::report {

/// One column of a row against patterns (validation_pattern.hpp), any of which may match. Columns are those of the table,
/// plus `file` (without folders) and `note` (any one phrase of the notes).
struct Condition {
  std::string column;
  std::vector<std::string> patterns;
};

/// All of `when` and none of `unless`.
struct RowMatch {
  std::vector<Condition> when, unless;
  /// What '#' and '@' captured, in the order of `when`; nullopt when the row does not match.
  [[nodiscard]] std::optional<std::vector<std::string>> captures(const MeasuredRow& row) const;
};

/// One rule of data/measured/sources.yaml. All rules that match a row apply in file order; later ones override single
/// values, features add up.
struct SourceRule {
  std::string name;
  RowMatch match;
  std::string framework, version;
  std::vector<std::string> features;
  std::vector<std::pair<std::string, std::string>> set;  ///< setting -> value, captures as $1..$9
  std::string skip;                                      ///< rows that state no usable configuration
};

/// One entry of data/measured/models.yaml: facts a published architecture has and the table's columns have not.
struct ModelRule {
  RowMatch match;
  std::string model_type;
  ModelSpec fill;                  ///< used where the row is silent
  std::vector<std::string> ignore; ///< columns of the row that are not what they seem for this model
  std::string priceless;           ///< why a model of this kind cannot be priced
};

/// Which figures of a row are kept out of the error tables.
enum class QuarantinedFigure { none, time, memory, both };

/// One line of data/measured/quarantine.csv.
struct QuarantineRule {
  RowMatch match;
  QuarantinedFigure figure = QuarantinedFigure::both;
  std::string reason;
};

struct RuleBook {
  std::vector<SourceRule> sources;
  std::vector<ModelRule> models;
  std::vector<QuarantineRule> quarantine;
};

/// `when` and `unless` of a rule.
[[nodiscard]] RowMatch read_row_match(formats::MapReader& reader, std::vector<Diagnostic>& sink);

/// Text of one column of a row as the patterns see it; empty for an absent value. Unknown columns: nullopt.
[[nodiscard]] std::optional<std::string> column_text(const MeasuredRow& row, std::string_view column);

/// Reads data/measured/{sources.yaml,models.yaml,quarantine.csv}; every problem at once. A missing folder is an io error.
[[nodiscard]] Result<RuleBook> load_rule_book(const DataStore& data);
/// The first quarantine rule that matches; nullptr when none does.
[[nodiscard]] const QuarantineRule* find_quarantine(const RuleBook& book, const MeasuredRow& row);

}  // namespace nd::report
