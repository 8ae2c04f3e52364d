// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "harness/store.hpp"
#include "formats/csv.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/bench.hpp"
#include "nd/search_space.hpp"

namespace nd {

namespace {

/// Columns in the order in which they first appear; a row has what it has.
class Table {
 public:
  void begin_row() { rows_.emplace_back(); }
  void put(const std::string& column, std::string value) {
    if (known_.insert(column).second) columns_.push_back(column);
    rows_.back()[column] = std::move(value);
  }
  void put(const std::string& column, std::optional<double> value) {
    if (value) put(column, formats::number_text(*value));
  }
  /// Columns with one value in all rows go, unless `keep` wants them.
  template <class Keep>
  void drop_constant(Keep keep) {
    if (rows_.size() < 2) return;
    columns_.erase(std::remove_if(columns_.begin(), columns_.end(), [&](const std::string& column) { return !keep(column) && constant(column); }), columns_.end());
  }
  [[nodiscard]] std::string text() const {
    if (columns_.empty()) return {};
    std::string out = formats::csv_line(columns_);
    for (const auto& row : rows_) {
      Words cells;
      for (const auto& column : columns_) {
        const auto found = row.find(column);
        cells.push_back(found == row.end() ? std::string() : found->second);
      }
      out += formats::csv_line(cells);
    }
    return out;
  }

 private:
  /// A row without the cell has another value than one with it.
  [[nodiscard]] bool constant(const std::string& column) const {
    std::set<std::string> values;
    for (const auto& row : rows_) {
      const auto found = row.find(column);
      values.insert(found == row.end() ? "-" : "+" + found->second);
    }
    return values.size() == 1;
  }
  Words columns_;
  std::set<std::string> known_;
  std::vector<std::map<std::string, std::string>> rows_;
};

void put_run(Table& table, const TableRow& row, bool failures) {
  const auto& [plan, result] = row;
  table.begin_row();
  table.put("id", plan.id);
  table.put("name", plan.name);
  if (failures) {
    table.put("status", std::string(to_text(result.status)));
    table.put("reason", result.reason);
    table.put("flags", fmt::format("{}", fmt::join(result.flags, " ")));
    table.put("attempts", std::to_string(result.attempts));
  }
  table.put("devices", std::to_string(plan.devices));
  for (const auto& [name, value] : plan.facts) table.put(name, value);
  if (result.steps.n > 0) {
    table.put("step_time_s", result.steps.median_s);
    table.put("step_time_mean_s", result.steps.mean_s);
    table.put("step_time_sd_s", result.steps.sd_s);
    table.put("step_time_p10_s", result.steps.p10_s);
    table.put("step_time_p90_s", result.steps.p90_s);
    table.put("steps", std::to_string(result.steps.n));
    table.put("reading", result.steps.reading);
  }
  table.put("tokens_per_s_per_device", result.tokens_per_s_per_device);
  table.put("loss", result.loss);
  table.put("mem_allocated_peak_bytes", result.allocated_bytes);
  table.put("mem_reserved_peak_bytes", result.reserved_bytes);
  table.put("predicted_step_s", plan.predicted_step_s);
  table.put("predicted_memory_gib", plan.predicted_memory_gib);
  if (plan.predicted_step_s && succeeded(result.status) && result.steps.median_s > 0)
    table.put("step_error_percent", (*plan.predicted_step_s / result.steps.median_s - 1) * 100);
  for (const auto& [name, value] : result.summary) table.put(name, value);
  if (failures)
    for (const auto& [name, value] : result.out_of_memory) table.put("oom_" + name + "_bytes", value);
}

/// What identifies a run of the old harness, and every figure: never compressed away.
bool always_kept(const std::string& column) {
  static const std::set<std::string> kKept{"id", "name", "devices", "torch_dtype", "framework_config", "peft_method", "model_name_or_path", "num_gpus",
                                           "per_device_train_batch_size", "gradient_accumulation_steps", "packing", "max_seq_len", "step_time_s",
                                           "tokens_per_s_per_device"};
  return kKept.count(column) == 1 || column.starts_with("mem_") || column.starts_with("train_");
}

/// Dimensions of the strategy that the classified table states, by the names that its readers share. Switches and enumerations are left to
/// the configuration.
constexpr std::array<std::pair<Dimension, std::string_view>, 9> kStepColumns{{{Dimension::dp, "DP"}, {Dimension::tp, "MP"}, {Dimension::pp, "PP"}, {Dimension::cp, "CP"},
                                                                             {Dimension::ep, "EP"}, {Dimension::vpp, "VPP"}, {Dimension::micro_batch_num, "MB"},
                                                                             {Dimension::micro_batch_size, "MBS"}, {Dimension::optimizer_shard, "OP"}}};

}  // namespace

std::string raw_summary_csv(const std::vector<TableRow>& rows) {
  Table table;
  for (const auto& row : rows) put_run(table, row, true);
  return table.text();
}

std::string benchmarks_csv(const std::vector<TableRow>& rows) {
  Table table;
  for (const auto& row : rows)
    if (succeeded(row.result.status)) put_run(table, row, false);
  table.drop_constant(always_kept);
  return table.text();
}

std::string steps_csv(const std::vector<TableRow>& rows) {
  Table table;
  for (const auto& row : rows) {
    if (!succeeded(row.result.status)) continue;
    std::map<std::string, std::string> stated;
    for (const auto& [name, value] : row.plan.facts)
      for (const auto& [dimension, column] : kStepColumns) {
        const auto info = dimension_info(dimension);
        if (name == info.name || name == info.acronym || (!info.alias.empty() && name == info.alias)) stated[std::string(column)] = value;
      }
    const auto& facts = row.plan.facts;
    const auto recompute = std::find_if(facts.begin(), facts.end(), [](const auto& fact) { return fact.first == "recompute"; });
    if (stated.empty()) continue;
    table.begin_row();
    for (const auto& [dimension, column] : kStepColumns)
      if (const auto found = stated.find(std::string(column)); found != stated.end()) table.put(found->first, found->second);
    if (recompute != facts.end()) table.put("recompute", recompute->second);
    const std::string time = fmt::format("{:.3f}", row.result.steps.median_s * 1e3);
    table.put("time", time);
    table.put("step_trainer", time);
    if (row.result.reserved_bytes) table.put("mem_reserved_bytes", fmt::format("{:.0f}", *row.result.reserved_bytes));
  }
  return table.text();
}

Result<std::vector<TableRow>> gather_results(const std::vector<std::string>& folders) {
  std::vector<TableRow> out;
  std::map<std::string, std::size_t> at;
  std::vector<Diagnostic> problems;
  const auto add = [&](const Error& error) { problems.insert(problems.end(), error.diagnostics.begin(), error.diagnostics.end()); };
  for (const auto& folder : folders) {
    const std::string path = folder + "/campaign.sqlite";
    if (!std::filesystem::is_regular_file(path)) {
      problems.push_back(make_diagnostic(Errc::io, {folder, 0, 0, {}}, "has no campaign.sqlite", "a folder of nd_bench run"));
      continue;
    }
    const auto store = harness::Store::open(path);
    if (!store) {
      add(store.error());
      continue;
    }
    const auto plans = store->plans();
    const auto attempts = store->attempts();
    if (!plans || !attempts) {
      add(plans ? attempts.error() : plans.error());
      continue;
    }
    std::map<std::string, std::string> results;
    for (const auto& attempt : *attempts)
      if (attempt.finished) results[attempt.run] = attempt.result;
    for (const auto& [id, text] : *plans) {
      auto plan = parse_plan(text, path);
      if (!plan || plan->runs.size() != 1) {
        if (!plan) add(plan.error());
        continue;
      }
      TableRow row{std::move(plan->runs.front()), {}};
      row.result.id = row.plan.id;
      row.result.name = row.plan.name;
      row.result.reason = row.plan.skip.empty() ? "has not run" : row.plan.skip;
      if (const auto found = results.find(id); found != results.end()) {
        auto result = parse_result(found->second, path);
        if (!result) {
          add(result.error());
          continue;
        }
        row.result = std::move(*result);
      }
      const auto [place, fresh] = at.emplace(id, out.size());
      if (fresh) out.push_back(std::move(row));
      else if (row.result.status != RunStatus::skipped) out[place->second] = std::move(row);
    }
  }
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

}  // namespace nd
