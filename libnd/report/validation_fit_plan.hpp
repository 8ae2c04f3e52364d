// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/result.hpp"
#include "nd/scenario.hpp"

namespace nd::report {

/// Devices, or versions of one framework, that share their constants.
struct FitGroup {
  std::string name;
  std::vector<std::string> devices;            ///< file names; "*" = every device
  std::string framework;                       ///< empty for devices
  std::vector<std::string> versions;           ///< empty = every version, kept in the file's defaults
  std::map<std::string, double> priors;        ///< by FitMember::key; otherwise the prior of the constant
  [[nodiscard]] bool covers_all_devices() const { return devices.size() == 1 && devices.front() == "*"; }
  [[nodiscard]] bool covers(const Scenario& scenario) const;
};

/// One kind of constant.
struct FitMember {
  std::string member, feature, reading;  ///< `feature`: belongs to it, and only rows with it have the constant
  std::string of;                        ///< "devices", "frameworks" or "all devices"
  double prior = 0, width = 0;           ///< prior 0: the figure of the data
  bool stated_only = false;              ///< only groups that state a prior of their own have it
  /// How a group names it among its priors: "traffic_factor", "traffic_factor@lora" for the figure of a feature.
  [[nodiscard]] std::string key() const { return feature.empty() ? member : member + "@" + feature; }
};

/// data/measured/fit.yaml
struct FitPlan {
  double loss_scale = 0.12, rows_per_file = 60;
  std::vector<std::string> never;  ///< files that are predicted and never learned from
  std::vector<FitGroup> groups;
  std::vector<FitMember> members;
};

[[nodiscard]] Result<FitPlan> load_fit_plan(const DataStore& data);

/// Where `member` lies in a scenario: "gemm_fraction", "attention_fraction.flash2", "levels.node.efficiency", "host_layer_ms";
/// nullptr when this scenario has no such figure or does not use it.
[[nodiscard]] double* fit_member_address(Scenario& scenario, const std::string& member);
/// Whether the step time of this scenario's strategy hangs on the constant at all: one that no row uses is not free.
[[nodiscard]] bool fit_member_used(const Scenario& scenario, const std::string& member);

}  // namespace nd::report
