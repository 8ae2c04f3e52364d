// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "nd/framework_profile.hpp"

namespace nd::report {

/// Which files support each fitted memory constant: those with scored rows that were priced with that value.
class FittedEvidence {
 public:
  void add(const FrameworkProfile& profile, const std::string& file);
  /// `profile` as it would be without `file`: fitted constants that no other file supports are those of `fallback`.
  [[nodiscard]] FrameworkProfile without(const FrameworkProfile& profile, const FrameworkProfile& fallback, const std::string& file) const;

 private:
  std::map<std::string, std::set<std::string>> files_;  ///< by trainer, field and value
};

}  // namespace nd::report
