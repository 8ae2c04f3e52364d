// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nd/model_spec.hpp"
#include "nd/run_spec.hpp"
#include "nd/validation.hpp"
#include "report/validation_rules.hpp"

namespace nd::report {

/// A row as stated specs, before anything is resolved. `skip` not empty = it states no usable configuration.
struct MappedRow {
  std::string skip;
  ModelSpec model;
  RunSpec run;
  std::string device, framework, version;
  std::vector<std::string> features;
  MemoryReading reading;
  bool no_time = false, no_memory = false;  ///< the stated figure is not comparable
  bool memory_only = false;         ///< the source says its times are no measure of throughput
  std::optional<double> node_gbit;  ///< line rate out of a node where the source states it, Gbit/s in all
  std::vector<std::string> assumptions;
};

/// The settings that the matching source rules leave for a row, later ones over earlier ones.
struct RowSettings {
  std::map<std::string, std::string> values;
  std::string framework, version, skip;
  std::vector<std::string> features;
};
[[nodiscard]] RowSettings collect_settings(const MeasuredRow& row, const RuleBook& book);
/// A setting as a whole number / real / flag ("1", "true"); nullopt when it is not set or something else.
[[nodiscard]] std::optional<std::int64_t> setting_integer(const RowSettings& settings, const std::string& name);
[[nodiscard]] std::optional<double> setting_real(const RowSettings& settings, const std::string& name);
[[nodiscard]] std::optional<bool> setting_flag(const RowSettings& settings, const std::string& name);
[[nodiscard]] std::string setting_text(const RowSettings& settings, const std::string& name);
/// Setting names sources.yaml may use; anything else is refused when the file is read.
[[nodiscard]] const std::vector<std::string>& known_settings();

/// Columns, settings and architecture facts -> model. Appends to `assumptions`; returns the reason when it cannot be, else "".
[[nodiscard]] std::string map_model(const MeasuredRow& row, const RuleBook& book, const RowSettings& settings, MappedRow& out);
/// Columns and settings -> run.
[[nodiscard]] std::string map_run(const MeasuredRow& row, const RowSettings& settings, MappedRow& out);
/// Whole row; pure.
[[nodiscard]] MappedRow map_row(const MeasuredRow& row, const RuleBook& book);

/// "zero1", "zero3/8", "none", "": level and the ranks one shard group has (0 = the whole data-parallel group).
struct ShardSpec {
  ZeroLevel level = ZeroLevel::none;
  std::int64_t ranks = 0;
};
[[nodiscard]] std::optional<ShardSpec> parse_sharding(const std::string& text);

}  // namespace nd::report
