// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/scenario.hpp"
#include "nd/validation.hpp"
#include "report/validation_mapping.hpp"

namespace nd::report {

/// Resolves and prices mapped rows. prepare() reads what a row needs from the data folder, once per device, profile and family;
/// price() only looks it up, so that prepared rows can be priced in parallel. prepare() is not thread-safe, price() is.
class RowPricer {
 public:
  explicit RowPricer(const DataStore& data) : data_(data) {}
  void prepare(const MappedRow& mapped);
  /// Files of the data folder that prepared rows need and that cannot be read; each problem once.
  [[nodiscard]] const std::vector<Diagnostic>& problems() const { return problems_; }
  /// Precondition: prepare() has seen `mapped`.
  [[nodiscard]] ValidatedRow price(const MeasuredRow& row, const MappedRow& mapped) const;
  /// Peak that the row's reading shows when the trainer's profile is `profile`; nullopt when the row has no scenario.
  [[nodiscard]] std::optional<double> peak_with(const FrameworkProfile& profile, const ValidatedRow& row, const MappedRow& mapped) const;
  /// The profile of a prepared row before what the run itself states; nullptr when it has none.
  [[nodiscard]] const FrameworkProfile* profile(const MappedRow& mapped) const;
  /// The scenario of a prepared row; the reason when it has none, else "". Fills what `out` says about it.
  [[nodiscard]] std::string resolve(const MappedRow& mapped, Scenario& scenario, ValidatedRow& out) const;

 private:
  struct LoadedDevice {
    DeviceType device;
    std::string problem;
    bool unknown = false;
  };
  struct LoadedProfile {
    FrameworkProfile profile;
    std::vector<std::string> features, assumptions;
    std::string problem;
  };
  struct LoadedFamily {
    ModelSpec defaults;
    std::vector<std::string> assumptions;
    std::string problem;
  };
  [[nodiscard]] LoadedDevice load_device(const std::string& name);
  [[nodiscard]] LoadedProfile load_profile(const MappedRow& mapped);
  [[nodiscard]] LoadedFamily load_family(const std::string& model_type);
  /// Whether the error is of a file that is there and cannot be read; then it is kept in problems_.
  bool broken(const Error& error);

  const DataStore& data_;
  std::map<std::string, LoadedDevice> devices_;
  std::map<std::string, LoadedProfile> profiles_;
  std::map<std::string, LoadedFamily> families_;
  std::vector<Diagnostic> problems_;
};

/// The row as a point of its sweep: shape, dtype and software are held, everything else is strategy.
[[nodiscard]] SweepPoint sweep_point(const ValidatedRow& row);

}  // namespace nd::report
