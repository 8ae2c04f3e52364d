// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nd/diagnostic.hpp"
#include "nd/model_spec.hpp"

namespace nd::model {

/// Collects the problems of one model spec. Thread-compatible.
class Checker {
 public:
  explicit Checker(SourceRef where) : where_(std::move(where)) {}
  void error(std::string_view field, Errc code, std::string message, std::string hint = {});
  [[nodiscard]] bool failed() const { return !problems_.empty(); }
  [[nodiscard]] Error error() && { return Error(std::move(problems_)); }

 private:
  SourceRef where_;
  std::vector<Diagnostic> problems_;
};

/// Required fields, bounds of every number, divisibility, all-or-none groups.
void check_ranges(const ModelSpec& spec, Checker& check);

}  // namespace nd::model
