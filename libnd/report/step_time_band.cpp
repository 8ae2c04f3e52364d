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

namespace nd {
namespace {

constexpr std::int64_t kLeastRows = 5;  ///< a p90 of fewer rows says little; the next wider group is taken
/// Where no table of bands is: p90 over every measured step [measured].
constexpr double kWidest = 0.17;

struct Band {
  std::string framework, version, device;  ///< empty = any
  double p90 = 0;
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
                     entry.real("p90").value_or(0.0)});
  }
  return bands;
}

}  // namespace

double step_time_band(const DataStore& data, const Scenario& scenario) {
  const std::vector<Band> bands = read_bands(data);
  const std::string& framework = scenario.profile.name;
  const std::string& version = scenario.profile.version;
  const std::string& device = scenario.cluster.device.name;
  // The narrowest group that was measured: this version here, this version anywhere, this framework, this device, everything.
  const Band order[] = {{framework, version, device}, {framework, version, ""}, {framework, "", ""}, {"", "", device}, {"", "", ""}};
  for (const Band& wanted : order)
    for (const Band& band : bands)
      if (band.p90 > 0 && band.framework == wanted.framework && band.version == wanted.version && band.device == wanted.device) return band.p90;
  return kWidest;
}

std::string step_time_bands_yaml(const ValidationReport& report) {
  using Key = std::pair<std::pair<std::string, std::string>, std::string>;
  std::map<Key, std::vector<double>> groups;
  for (const ValidatedRow& row : report.rows) {
    const auto error = row.time_error();
    if (!error || row.memory_only) continue;
    const std::pair version(row.framework, row.framework_version);
    for (const Key& key : {Key{version, row.device}, Key{version, ""}, Key{{row.framework, ""}, ""}, Key{{"", ""}, row.device}, Key{{"", ""}, ""}})
      groups[key].push_back(*error);
  }
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# Written by nd_validate --bands: nine in ten measured steps of the group are within p90 of the prediction. The narrowest\n"
      "# group that fits a request is its step_time_band.\n"
      "schema: nd/bands/1\nbands:\n";
  for (const auto& [key, errors] : groups) {
    if (static_cast<std::int64_t>(errors.size()) < kLeastRows) continue;
    out += "  - {";
    if (!key.first.first.empty()) out += "framework: " + key.first.first + ", ";
    if (!key.first.second.empty()) out += "version: \"" + key.first.second + "\", ";
    if (!key.second.empty()) out += "device: " + key.second + ", ";
    out += fmt::format("rows: {}, p90: {:.3f}}}\n", errors.size(), error_statistics(errors).p90_ape);
  }
  return out;
}

}  // namespace nd
