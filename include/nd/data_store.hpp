// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nd/device.hpp"
#include "nd/framework_profile.hpp"
#include "nd/model_spec.hpp"
#include "nd/result.hpp"

namespace nd {

/// The data folder: devices/, frameworks/, arch/, models/. Takes its root explicitly and reads files when asked.
/// Thread-compatible: no state but the root.
class DataStore {
 public:
  explicit DataStore(std::string root) : root_(std::move(root)) {}
  [[nodiscard]] const std::string& root() const { return root_; }

  /// Names in alphabetical order. Errors: io when the folder is missing.
  [[nodiscard]] Result<std::vector<std::string>> device_names() const;
  [[nodiscard]] Result<std::vector<std::string>> framework_names() const;
  [[nodiscard]] Result<std::vector<std::string>> model_names() const;

  /// By name or alias, any case, or a path to a device YAML. Unknown: out_of_range with the nearest names.
  [[nodiscard]] Result<DeviceType> device(std::string_view name_or_path) const;
  /// `version` empty = newest; an unknown version = newest not after it in the file's order, else an error listing them.
  /// `features` are applied in order. Unknown names: out_of_range with the nearest.
  [[nodiscard]] Result<FrameworkProfile> framework(std::string_view name, std::string_view version,
                                                   const std::vector<std::string>& features) const;
  /// data/models/<name>/config.json.
  [[nodiscard]] Result<ModelSpec> model(std::string_view name) const;
  /// Fills the fields of `spec` that its family (by model_type) defines and the source left open. An unknown model_type
  /// takes the "default" family; `notes` then says so.
  [[nodiscard]] Result<ModelSpec> with_family_defaults(ModelSpec spec, std::vector<Diagnostic>& notes) const;

 private:
  std::string root_;
};

/// The data folder that a program works with: `stated` when it is not empty, else the share/nd of the installation that `program` (the
/// path of its binary, links resolved) belongs to, else data/ of the source tree it was built in. Errors: io when that is no data folder.
[[nodiscard]] Result<std::string> find_data_folder(const std::string& stated, const std::string& program);

}  // namespace nd
