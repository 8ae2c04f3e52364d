// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nd/calibration.hpp"
#include "nd/data_store.hpp"
#include "nd/result.hpp"

namespace nd {



struct FitRequest {
  bool by_model = false, by_file = false;
  int jobs = 1;
};

/// A constant that was fitted.
struct FittedConstant {
  std::string group, member, feature, reading;
  double prior = 0, width = 0, before = 0, fitted = 0;
  double z = 0;            ///< (log fitted - log prior) / width
  double sensitivity = 0;  ///< fall of the loss, linearised, that this constant alone brings from its prior
  std::int64_t rows = 0;   ///< that depend on it
};

/// Errors of one group of rows under the figures of the data, the priors, the fit and the two hold-outs.
struct FitErrors {
  ErrorStatistics data, priors, fitted, by_model, by_file;
};

struct FitReport {
  FitErrors all;                            ///< without rows whose source says its times are launch-bound
  FitErrors file_means;                     ///< mean over the files of their means and medians (of the same rows)
  std::map<std::string, FitErrors> files;
  std::vector<FittedConstant> constants;
  std::int64_t rows = 0, learned_rows = 0;
  double loss_data = 0, loss_priors = 0, loss_fitted = 0;
  bool by_model = false, by_file = false;
};

/// Fits the constants of data/measured/fit.yaml on the rows that have a time and are not quarantined.
[[nodiscard]] Result<FitReport> fit_constants(const std::vector<MeasuredRow>& rows, const DataStore& data, const FitRequest& request);
/// Tables for a terminal.
[[nodiscard]] std::string fit_text(const FitReport& report);
/// Copies the device and framework files that have fitted constants to `folder`/devices and `folder`/frameworks with the
/// fitted figures in place, kind fitted, and the source text; comments and everything else are kept. Returns the files written.
[[nodiscard]] Result<std::vector<std::string>> write_fitted_files(const FitReport& report, const DataStore& data, const std::string& folder);

}  // namespace nd
