// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/validation.hpp"
#include "report/validation_mapping.hpp"

namespace nd::report {

/// Resolves and prices mapped rows; keeps the devices and framework profiles it has read. Thread-compatible.
class RowPricer {
 public:
  explicit RowPricer(const DataStore& data) : data_(data) {}
  [[nodiscard]] ValidatedRow price(const MeasuredRow& row, const MappedRow& mapped);

 private:
  struct LoadedDevice {
    DeviceType device;
    std::string problem;
  };
  struct LoadedProfile {
    FrameworkProfile profile;
    std::vector<std::string> features, assumptions;
    std::string problem;
  };
  const LoadedDevice& device(const std::string& name);
  const LoadedProfile& profile(const MappedRow& mapped);
  [[nodiscard]] std::string resolve(const MappedRow& mapped, Scenario& scenario, ValidatedRow& out);

  const DataStore& data_;
  std::map<std::string, LoadedDevice> devices_;
  std::map<std::string, LoadedProfile> profiles_;
};

/// The row as a point of its sweep: shape, dtype and software are held, everything else is strategy.
[[nodiscard]] SweepPoint sweep_point(const ValidatedRow& row);

}  // namespace nd::report
