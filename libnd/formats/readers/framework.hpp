// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/framework_profile.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// Figures that a switch of the trainer changes.
struct FrameworkFeature {
  std::string name, title;
  const ConfigNode* node = nullptr;  ///< its overrides, inside the document
};

struct FrameworkVersion {
  std::string name;
  std::vector<std::string> aliases;
  FrameworkProfile profile;                ///< defaults with this version's figures in place
  std::vector<FrameworkFeature> features;  ///< what features of the file mean in this version, where that differs
};

/// A framework file of schema nd/framework/1 (data/schema/framework.md) with all versions worked out.
class FrameworkFile {
 public:
  /// `root` must outlive the file. Every problem at once, features included.
  [[nodiscard]] static Result<FrameworkFile> read(const ConfigNode& root);

  /// `version` empty = the newest; not listed = the newest that is not after it (compare_versions). `features` in order.
  /// Errors: out_of_range with the nearest names.
  [[nodiscard]] Result<FrameworkProfile> profile(std::string_view version, const std::vector<std::string>& features) const;

  [[nodiscard]] const std::vector<FrameworkVersion>& versions() const { return versions_; }
  [[nodiscard]] const std::vector<FrameworkFeature>& features() const { return features_; }

 private:
  [[nodiscard]] const FrameworkVersion* find_version(std::string_view version) const;
  [[nodiscard]] const FrameworkVersion* newest_not_after(std::string_view version) const;

  const ConfigNode* root_ = nullptr;
  std::string name_;
  std::vector<FrameworkVersion> versions_;  ///< oldest to newest
  std::vector<FrameworkFeature> features_;
};

/// Order of two version names: -1, 0, 1, or 2 when they cannot be compared (another family: "bridge-25.05" and "0.8"). Runs of
/// digits compare as numbers, "rc" and other words come before the release they lead to.
[[nodiscard]] int compare_versions(std::string_view a, std::string_view b);

}  // namespace nd::formats
