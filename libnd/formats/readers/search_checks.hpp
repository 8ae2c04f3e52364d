// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/readers/section.hpp"
#include "formats/tree/node.hpp"
#include "nd/formats.hpp"

namespace nd::formats {

/// What a search config promises about its lists, held against the model, the batch and the devices. A list holds possible
/// values only: each impossible one is an error of its own. The rules are those of the search (nd/search_space.hpp): expert
/// parallelism is taken out of dp x tp x cp and the shards out of dp x cp; neither is a factor of the devices.
class SearchChecks {
 public:
  /// All must outlive the object.
  SearchChecks(const Request& request, const ConfigNode& root, Findings& findings);
  void run();

 private:
  struct Values {
    std::vector<std::int64_t> values;
    SourceRef where;
  };
  [[nodiscard]] Values values_of(Dimension dimension) const;
  void problem(const SourceRef& where, const std::string& message);
  void divides(std::int64_t number, const std::string& what, const Values& values, const std::string& degree);
  void batches();
  void widths();
  void product();
  void dense();
  void partition();
  void ranges();

  const Request& request_;
  const ConfigNode& root_;
  Findings& findings_;
};

}  // namespace nd::formats
