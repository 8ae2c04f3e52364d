// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tree/node.hpp"
#include "nd/model_spec.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// Facts of one architecture family: a file of data/arch (schema nd/arch/1, docs/formats/hf.md). Immutable after reading.
struct Family {
  /// Facts that hold when all conditions do. A condition is a key of the config (dotted path) and the text its value must
  /// have; an absent key reads as false.
  struct Rule {
    std::vector<std::pair<std::string, std::string>> conditions;
    ModelSpec facts;
    bool override_stated = false;  ///< also over what the config states
  };

  std::string name;
  std::vector<std::string> model_types;
  ModelSpec defaults;                                         ///< for fields the source leaves open
  std::map<std::string, std::vector<std::string>> read;       ///< field -> config keys (dotted paths) tried first
  std::vector<Rule> rules;
  std::int64_t intermediate_factor = 0;   ///< feed-forward width / hidden size where the config states none; 0 = none
  std::int64_t intermediate_divisor = 1;  ///< stated width / real width
};

[[nodiscard]] Result<Family> read_family(const ConfigNode& root);
/// The family that lists `model_type`, else the one named "default". Errors: io, and those of read_family.
[[nodiscard]] Result<Family> find_family(const std::string& folder, std::string_view model_type);
/// Whether the family lists the type.
[[nodiscard]] bool lists(const Family& family, std::string_view model_type);

/// A member at a dotted path, nullptr when absent or null.
[[nodiscard]] const ConfigNode* find_path(const ConfigNode& root, std::string_view path);

}  // namespace nd::formats
