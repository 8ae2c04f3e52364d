// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"
#include "nd/report.hpp"
#include "nd/validation.hpp"
#include "report/validation_pricer.hpp"

namespace nd {
namespace {

constexpr std::int64_t kLeastRows = 5;  ///< a p90 of fewer rows says little; the next wider group is taken
/// Where no table of bands is: p90 over every measured step [measured].
constexpr double kWidest = 0.17;
/// Where no repeats were measured: the middle of what the tables show, 2 to 7 % [measured].
constexpr double kRepeat = 0.05;

struct Band {
  std::string framework, version, device;  ///< empty = any
  double p90 = 0, repeat = 0;
};

std::vector<Band> read_bands(const DataStore& data) {
  std::vector<Band> bands;
  const auto root = formats::read_document(data.root() + "/measured/bands.yaml");
  if (!root) return bands;
  std::vector<Diagnostic> sink;
  formats::MapReader reader(*root, sink);
  const formats::ConfigNode* list = reader.child("bands");
  if (list == nullptr || !list->is_sequence()) return bands;
  for (const formats::ConfigNode& item : list->items) {
    formats::MapReader entry(item, sink);
    bands.push_back({entry.string("framework").value_or(""), entry.string("version").value_or(""), entry.string("device").value_or(""),
                     entry.real("p90").value_or(0.0), entry.real("repeat").value_or(0.0)});
  }
  return bands;
}

/// The narrowest group of bands.yaml that covers a request and states `figure`, else `fallback`.
double narrowest(const DataStore& data, const Scenario& scenario, double Band::*figure, double fallback) {
  const std::vector<Band> bands = read_bands(data);
  const std::string& framework = scenario.profile.name;
  const std::string& version = scenario.profile.version;
  const std::string& device = scenario.cluster.device.name;
  // The narrowest group that was measured: this version here, this version anywhere, this framework, this device, everything.
  const Band order[] = {{framework, version, device}, {framework, version, ""}, {framework, "", ""}, {"", "", device}, {"", "", ""}};
  for (const Band& wanted : order)
    for (const Band& band : bands)
      if (band.*figure > 0 && band.framework == wanted.framework && band.version == wanted.version && band.device == wanted.device)
        return band.*figure;
  return fallback;
}

using Key = std::pair<std::pair<std::string, std::string>, std::string>;

/// The groups a row counts in: its version on its device, its version, its framework, its device, all.
std::vector<Key> groups_of(const ValidatedRow& row) {
  const std::pair version(row.framework, row.framework_version);
  return {Key{version, row.device}, Key{version, ""}, Key{{row.framework, ""}, ""}, Key{{"", ""}, row.device}, Key{{"", ""}, ""}};
}

/// Distance of each repeat from the mean of its like: rows that agree in all but what was measured.
std::map<Key, std::vector<double>> repeat_scatter(const ValidationReport& report) {
  std::map<std::string, std::vector<const ValidatedRow*>> repeats;
  for (const ValidatedRow& row : report.rows) {
    if (!row.time_error() || row.memory_only) continue;
    const SweepPoint point = report::sweep_point(row);
    repeats[fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", point.source, point.model, point.device, point.devices, point.gbs, point.seq_len, point.variant,
                        point.strategy)]
        .push_back(&row);
  }
  std::map<Key, std::vector<double>> scatter;
  for (const auto& [name, rows] : repeats) {
    if (rows.size() < 2) continue;
    double mean = 0;
    for (const ValidatedRow* row : rows) mean += *row->measured_step_time_s / static_cast<double>(rows.size());
    for (const ValidatedRow* row : rows)
      for (const Key& key : groups_of(*row)) scatter[key].push_back(std::abs(*row->measured_step_time_s / mean - 1.0));
  }
  return scatter;
}

}  // namespace

double step_time_band(const DataStore& data, const Scenario& scenario) { return narrowest(data, scenario, &Band::p90, kWidest); }

double step_time_repeat(const DataStore& data, const Scenario& scenario) { return narrowest(data, scenario, &Band::repeat, kRepeat); }

std::string step_time_bands_yaml(const ValidationReport& report) {
  std::map<Key, std::vector<double>> groups;
  const std::map<Key, std::vector<double>> scatter = repeat_scatter(report);
  for (const ValidatedRow& row : report.rows) {
    const auto error = row.time_error();
    if (!error || row.memory_only) continue;
    for (const Key& key : groups_of(row)) groups[key].push_back(*error);
  }
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# Written by nd_validate --bands: nine in ten measured steps of the group are within p90 of the prediction. The narrowest\n"
      "# group that fits a request is its step_time_band. repeat: mean distance of runs of one configuration from their mean; what\n"
      "# is predicted closer together is a tie.\n"
      "schema: nd/bands/1\nbands:\n";
  for (const auto& [key, errors] : groups) {
    if (static_cast<std::int64_t>(errors.size()) < kLeastRows) continue;
    out += "  - {";
    if (!key.first.first.empty()) out += "framework: " + key.first.first + ", ";
    if (!key.first.second.empty()) out += "version: \"" + key.first.second + "\", ";
    if (!key.second.empty()) out += "device: " + key.second + ", ";
    out += fmt::format("rows: {}, p90: {:.3f}", errors.size(), error_statistics(errors).p90_ape);
    if (const auto found = scatter.find(key); found != scatter.end() && static_cast<std::int64_t>(found->second.size()) >= kLeastRows)
      out += fmt::format(", repeats: {}, repeat: {:.3f}", found->second.size(), error_statistics(found->second).mean_ape);
    out += "}\n";
  }
  return out;
}

}  // namespace nd
